"""The ladder in an editor: offers a larger model that was measured to fit, installs it, and goes back if it is slow.

Measuring and pulling are `midspan models offer` and `pull`, processes of their own: no network and no hub's client in
the language server. While a model is pulled and loaded, the one in use goes on answering.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import cattrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from engine.client.connection import EngineClient
from engine.client.launcher import stop
from engine.errors import MidspanError, ModelError
from engine.json_file import parse_small_json
from engine.library.ladder import fits_now, note_slow
from engine.library.store import DEFAULT, EMBEDDED, choose, chosen_model
from engine.protocol.editor_messages import ModelOffer
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.protocol import refusal
from lsp_server.session import Session
from lsp_server.wire import InstallResult

FIRST_LOOK_FILLS = 20
"""The machine is measured after so many fills: an editor that only shows a file never is."""
TRIAL_FILLS = 20
"""By the times of so many fills a new model is judged."""
_LEAVE_S = 10.0
_logger = logging.getLogger(__name__)


class Ladder:
    """What a session knows of larger models. `offered` measures once; `install` is the command midspan.installModel."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server, self._session = server, session
        self._measuring: asyncio.Task[ModelOffer | None] | None = None
        self._climbing: asyncio.Task[None] | None = None
        self._judging: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._was_too_slow = False
        session.board.after_fills(FIRST_LOOK_FILLS, lambda _: self._measure())

    async def offered(self) -> ModelOffer | None:
        """Return the larger model that this machine could carry; None where the user has chosen one, or it cannot."""
        measuring = self._measure()
        return None if measuring is None else await asyncio.shield(measuring)

    def follow_settings(self) -> None:
        """Offer nothing to a user whose settings name a model."""
        if self._session.configuration.settings.model != DEFAULT:
            self._session.board.offer(None)
            self._measuring = None

    async def install(self) -> InstallResult:
        """Begin to install the model that is offered. Its progress bar and a message say how that goes."""
        offer = await self.offered()
        # Asked only now: a user who sees nothing while the machine is measured asks twice.
        if self._climbing is not None and not self._climbing.done():
            raise refusal("a larger model is being installed already")
        if offer is None:
            raise refusal("there is no larger model to install: `midspan doctor` says what this machine carries")
        self._climbing = asyncio.create_task(self._climb(offer))
        return InstallResult(offer.model)

    async def close(self) -> None:
        """End all work. The pulled part of a model is kept for the next time."""
        self._stop_process()
        tasks = [task for task in (self._measuring, self._climbing, self._judging) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _measure(self) -> "asyncio.Task[ModelOffer | None] | None":
        if self._was_too_slow or self._session.configuration.settings.model != DEFAULT:
            return None
        if self._measuring is None:
            self._measuring = asyncio.create_task(self._measured())
        return self._measuring

    async def _measured(self) -> ModelOffer | None:
        budget = self._session.configuration.settings.budget_ms
        try:
            printed = await self._run(("offer", "--json", "--budget-ms", str(budget)))
            found = parse_small_json(printed.encode())
            offer = None if found is None else cattrs.structure(found, ModelOffer)
        except (MidspanError, OSError, ValueError, cattrs.BaseValidationError) as error:
            _logger.info("no larger model is offered: %s", error)
            return None
        self._session.board.offer(offer)
        return offer

    async def _climb(self, offer: ModelOffer) -> None:
        """Pull a model, make it the default, and change over to it; or say in one line why not."""
        before, target = chosen_model().model, offer.path or offer.model
        title = f"Installing {offer.model}"
        try:
            with ProgressBar(self._server, title, cancellable=True) as bar:
                bar.on_cancel = self._stop_process
                if not offer.path:
                    await self._run(("pull", offer.model, "--json"), lambda line: _report(bar, line))
                if bar.cancelled:
                    return
                bar.report("loading the model")
                if not fits_now(offer.model):
                    raise ModelError("the machine's memory is too short now")
                choose(target)
                left = await self._session.link.change_over()
        except (MidspanError, OSError) as error:
            if bar.cancelled:
                return
            if chosen_model().model == target != before:
                choose(before)
            self._tell(f"{_called(before)} goes on, {offer.model} is not used: {error}")
            return
        self._measuring = None
        self._session.board.offer(None)
        self._session.board.after_fills(TRIAL_FILLS, lambda times: self._judge(times, before, target))
        self._tell(f"{offer.model} answers from now on; `midspan models use {before}` goes back")
        await _leave(left)

    def _judge(self, times: Sequence[float], before: str, target: str) -> None:
        budget = self._session.configuration.settings.budget_ms
        line = too_slow(times, budget, before, target)
        if line and chosen_model().model == target:
            self._was_too_slow = True
            self._judging = asyncio.create_task(self._go_back(before, line))

    async def _go_back(self, before: str, line: str) -> None:
        try:
            paths = self._session.configuration.settings.engine_options.paths  # of the model that is left
            note_slow(chosen_model().model)
            choose(before)
            left = await self._session.link.change_over()
        except (MidspanError, OSError) as error:
            _logger.error("the model cannot be changed back: %s", error)
            return
        self._tell(line)
        if left is not None:
            with suppress(MidspanError):
                if (await left.status()).clients == 1:
                    await stop(left, paths)  # nobody else has it, and it takes the memory of two
            await left.close()

    async def _run(self, arguments: Sequence[str], on_line: Callable[[str], None] = lambda _: None) -> str:
        """Run a command of `midspan models`, and return the last line that it prints.

        Raises ModelError with its own error line.
        """
        command = (sys.executable, "-P", "-m", "engine.cli", "models", *arguments)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        printed = ""
        try:
            async for line in process.stdout:
                printed = line.decode(errors="replace").strip()
                on_line(printed)
            status, said = await process.wait(), (await errors).decode(errors="replace").splitlines()
        finally:
            self._process = None
            errors.cancel()
            if process.returncode is None:
                process.terminate()
        if status:
            own = [each.removeprefix("midspan: ") for each in said if each.startswith("midspan: ")]
            raise ModelError(own[-1] if own else f"`midspan models {arguments[0]}` ended with status {status}")
        return printed

    def _stop_process(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    def _tell(self, line: str) -> None:
        _logger.info("%s", line)
        self._server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Midspan: {line}"))


def too_slow(times: Sequence[float], budget_ms: float, before: str, target: str) -> str:
    """Return the line for a model whose median fill, in milliseconds, is over the budget; "" for one in time."""
    median = sorted(times)[len(times) // 2]
    if median <= budget_ms:
        return ""
    return (
        f"{target} takes {median:.0f} ms here, and midspan.budgetMs is {budget_ms:.0f}: {_called(before)} answers "
        f"again; to use it all the same run `midspan models use {target}` and raise midspan.budgetMs"
    )


def _called(model: str) -> str:
    return "the embedded model" if model == EMBEDDED else model


def _report(bar: ProgressBar, line: str) -> None:
    """Show a line of `midspan models pull --json` on a bar."""
    with suppress(ValueError, TypeError, LookupError):
        progress = parse_small_json(line.encode())
        bar.report(str(progress["doing"]), int(100 * progress["present"] / max(progress["total"], 1)))


async def _leave(client: EngineClient | None) -> None:
    """Close a connection, after time for the fills that it was asked for. The engine goes on for others."""
    if client is None:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEAVE_S):
            await client.closed.wait()
    await client.close()
