"""`midspan models pull`: by a name or the word "coder", with a bar or with lines for a program."""

import json
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from engine.cli.console import err, out
from engine.cli.default_model import make_default
from engine.cli.ladder import BUDGET_MS, BudgetMs, best_rung, runnable_elsewhere
from engine.cli.model_sheet import gguf_sheet
from engine.errors import ModelError
from engine.library import store
from engine.library.catalog import CatalogModel, catalog
from engine.library.device_memory import gigabytes
from engine.library.gguf_file import is_gguf
from engine.library.ladder import CODER, Rung
from engine.library.resolve import folder_of
from engine.library.store import EMBEDDED


class PullView:
    """One bar for all files with the name of the current file. A context manager; shows nothing outside a terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("asking the hub", total=None)

    def __enter__(self) -> "PullView":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, total: int, present: int) -> None:
        """Like the other methods, see library.pull.PullProgress."""
        self._progress.update(self._task, total=total, completed=present)

    def fetch(self, name: str) -> None:
        self._progress.update(self._task, description=name)

    def check(self, name: str) -> None:
        self._progress.update(self._task, description=f"checking {name}")

    def advance(self, count: int) -> None:
        self._progress.update(self._task, advance=count)


class PullLines:
    """Writes a line of JSON for each file and each percent: `{"doing": ..., "present": bytes, "total": bytes}`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._doing = "asking the hub"
        self._total = self._present = self._written = 0

    def begin(self, total: int, present: int) -> None:
        """Like the other methods, see library.pull.PullProgress."""
        self._total, self._present = total, present
        self._line()

    def fetch(self, name: str) -> None:
        self._doing = name
        self._line()

    def check(self, name: str) -> None:
        self._doing = f"checking {name}"
        self._line()

    def advance(self, count: int) -> None:
        self._present += count
        if abs(self._present - self._written) * 100 >= self._total:
            self._line()

    def _line(self) -> None:
        self._written = self._present
        self._write(json.dumps({"doing": self._doing, "present": self._present, "total": self._total}))


_INTERRUPTED = 130


def pull(
    name: Annotated[str, typer.Argument(help="A name from `midspan models list`, or coder: the largest that fits.")],
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept a licence that is not free, without a question.")
    ] = False,
    budget_ms: BudgetMs = BUDGET_MS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the progress as JSON, a line each percent, for programs.")
    ] = False,
) -> None:
    """Download a model from the hub. After an interruption, pull again to continue.

    "coder" takes the largest coder that this machine carries, also from Ollama or LM Studio, and makes it the default.
    """
    try:
        if name == CODER:
            _pull_coder(budget_ms, accept_licence, as_json)
        else:
            _pull(_pullable(name), accept_licence, as_json)
    except KeyboardInterrupt:
        typer.echo(f"midspan: stopped; the received part is kept, continue with: midspan models pull {name}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    if not as_json and name != CODER:
        out.print(f"make it the default with: midspan models use {name}", style="dim", soft_wrap=True)


def _pull_coder(budget_ms: float, accept_licence: bool, as_json: bool) -> None:
    """Take the largest rung that fits, and make it the default when it is whole. Raises ModelError in one line."""
    with err.status("timing passes on this machine"):
        rung = best_rung(budget_ms)
    path = None if store.is_pulled(rung.model.name) else runnable_elsewhere(rung.model)
    if path is None:
        _pull(rung.model, accept_licence, as_json)
        if is_gguf(place := folder_of(rung.model.name)):
            gguf_sheet(place)  # raises where it could not be run
    if as_json:
        store.choose(str(path or rung.model.name))
        return
    out.print(_taken(rung, "" if path is None else f", from {path}"), soft_wrap=True)
    make_default(str(path or rung.model.name))


def _taken(rung: Rung, place: str) -> str:
    return f"{rung.model.name}{place}: it will suggest {rung.time}, licence {rung.model.licence}"


def _pull(model: CatalogModel, accept_licence: bool, as_json: bool) -> None:
    is_here = store.is_pulled(model.name)
    if not is_here:
        _accept(model, accept_licence)
    # Imported only here, because this is the only command that uses the network.
    from engine.library.pull import Puller

    if as_json:
        Puller(PullLines(typer.echo)).pull(model, accepted=not model.free)
        return
    with PullView(err) as view:
        record = Puller(view).pull(model, accepted=not model.free)
    how = "is here already, at" if is_here else f"is here: {gigabytes(record.size)},"
    checked = "" if is_here else ", all checksums correct"
    out.print(f"{model.name} {how} commit {record.commit}{checked}", soft_wrap=True)


def _pullable(name: str) -> CatalogModel:
    if name == EMBEDDED:
        raise ModelError("the embedded model is part of Midspan; there is nothing to pull")
    if name not in catalog():
        raise ModelError(
            f"no model {name!r} to pull; there are {', '.join(known for known in catalog() if known != EMBEDDED)}"
        )
    return catalog()[name]


def _accept(model: CatalogModel, accepted: bool) -> None:
    """Show the licence. If it is not free, ask the user to accept it. Raises ModelError when it is not accepted."""
    err.print(f"{model.hub}, licence {model.licence}: {model.licence_page}", soft_wrap=True)
    if model.free or accepted:
        return
    if confirmed(f"{model.licence} is not known to be a free licence. Have you read it, and do you accept it?"):
        return
    raise ModelError(
        f"the licence of {model.name} ({model.licence}) was not accepted; read it at {model.licence_page}, "
        "then pull with --accept-licence"
    )


def confirmed(question: str) -> bool:
    return sys.stdin.isatty() and typer.confirm(question, err=True)
