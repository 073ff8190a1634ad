"""`midspan fill`: fill a hole in a file through the language server, as an editor does."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.live import Live
from rich.text import Text

from engine.cli.console import AsJson, OptionalModel, OptionalPrecision, err, leave, out
from engine.cli.cursor import Cursor, CursorError
from engine.cli.fill_view import canvas_text, filled_view, in_context, origins_view
from engine.cli.lsp_client import LspSession
from engine.protocol.editor_messages import FillOptions, FillProgress, FillResult
from engine.protocol.messages import RuleName

# A denoising step takes a few milliseconds, too fast to see. The animation is slower; the printed times are the real
# ones.
_FRAME_SECONDS = 0.12
# A budget is for editors, whose users type on. A person at a terminal waits for the context and for a slow model.
_PATIENCE_MS = 60_000.0
_WAITING = "filling the hole"
_WAITING_TO_EXPLAIN = "learning the files of the repository, then filling the hole"


def fill(
    file: Annotated[Path, typer.Argument(help="The file with the hole. It is not changed.")],
    at: Annotated[
        str, typer.Option("--at", metavar="LINE:COL", help="The position of the hole. Both numbers start at 1.")
    ],
    watch: Annotated[bool, typer.Option("--watch", help="Show the canvas while its tokens are committed.")] = False,
    steps: Annotated[
        int | None, typer.Option(min=1, max=256, help="The number of denoising steps. Default: what the budget allows.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", min=1, metavar="MS", help="The time limit in milliseconds. Default: a minute."),
    ] = None,
    rule: Annotated[RuleName | None, typer.Option(help="The commit rule.")] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Learn the file's repository first, and say where the text comes from, and why an editor hides it.",
        ),
    ] = False,
    left_to_right: Annotated[bool, typer.Option("--left-to-right", help="Short for --rule left-to-right.")] = False,
    as_json: AsJson = False,
    model: OptionalModel = None,
    precision: OptionalPrecision = None,
) -> None:
    """Fill the hole at LINE:COL of FILE and show it in its context."""
    try:
        if left_to_right and rule not in (None, "left-to-right"):
            raise CursorError(f"--left-to-right and --rule {rule} exclude each other; give one of them")
        cursor = Cursor.parse(file, at)
    except CursorError as error:
        leave(error)
    options = FillOptions("left-to-right" if left_to_right else rule, steps, budget or _PATIENCE_MS, explain)
    session = LspSession(model, precision, _repository_of(file) if explain else None)
    answer = asyncio.run(_fill(session, cursor, options, _Animation(cursor) if watch and not as_json else None))
    if as_json:
        fields = _fields(answer)
        if explain:
            fields |= {"source": answer.source, "origins": [attrs.asdict(origin) for origin in answer.origins]}
            fields |= {"silence": answer.silence}
        typer.echo(json.dumps(fields))
        return
    out.print(filled_view(cursor, answer), soft_wrap=True)
    if explain:
        out.print(origins_view(answer), soft_wrap=True)


def _repository_of(file: Path) -> Path:
    """Return the folder of the git repository that a file is in, else the file's own folder."""
    folder = file.resolve().parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


class _Animation:
    """Shows the canvas of each step in its context, slowly enough for a person."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._offset = cursor.offset(cursor.line, cursor.character)
        self._frames: asyncio.Queue[FillProgress | None] = asyncio.Queue()

    def on_canvas(self, progress: FillProgress) -> None:
        self._frames.put_nowait(progress)

    def end(self) -> None:
        self._frames.put_nowait(None)

    async def play(self) -> None:
        """Show every frame but the last until `end`, then clear them from the terminal."""
        with Live(console=out, transient=True, auto_refresh=False) as live:
            shown = await self._frames.get()
            # The last canvas is not shown: the fill follows as it would be inserted, without what shaping removes.
            while shown is not None and (newer := await self._frames.get()) is not None:
                frame, shown = shown, newer
                view = in_context(self._cursor, self._offset, self._offset, canvas_text(frame.canvas))
                live.update(Text.assemble(view, "\n", (f"step {frame.step}", "cyan")), refresh=True)
                await asyncio.sleep(_FRAME_SECONDS)


async def _fill(session: LspSession, cursor: Cursor, options: FillOptions, animation: _Animation | None) -> FillResult:
    async with session:
        await session.open(cursor.path, cursor.text)
        if animation is None or not out.is_terminal:
            waiting = _WAITING_TO_EXPLAIN if options.explain else _WAITING
            with err.status(waiting) as shown:
                session.on_stage(lambda stage: shown.update(stage.message if stage.state == "starting" else waiting))
                return await session.fill(cursor, options)
        player = asyncio.create_task(animation.play())
        try:
            return await session.fill(cursor, options, animation.on_canvas)
        finally:
            animation.end()
            await player


def _fields(answer: FillResult) -> dict[str, object]:
    ms = answer.ms
    return {
        "text": answer.text,
        "tokens": len(answer.tokens),
        "steps": answer.steps,
        "finish": answer.finish,
        "confidence": round(answer.confidence, 4),
        "ms": {"queue": ms.queue, "encode": ms.encode, "denoise": ms.denoise, "total": ms.total},
        "model": answer.model,
    }
