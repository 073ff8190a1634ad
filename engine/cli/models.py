"""`midspan models`: list, inspect, choose and remove models, and pull them with a bar or with lines for a program."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from engine.cli import model_sheet
from engine.cli.console import FAILED, AsJson, err, leave, out
from engine.cli.model_sheet import (
    ModelSheet,
    count_of,
    found_as_json,
    gguf_of,
    gguf_sheet,
    show_gguf,
    show_other_models,
)
from engine.client.address import distrust, resolve_model, trust
from engine.client.launcher import EngineOptions, stop_running
from engine.errors import MidspanError, ModelError
from engine.library import store
from engine.library.catalog import DEFAULT_BUDGET_MS, CatalogModel, answering_devices, answers_on, catalog
from engine.library.device_memory import device_memories, gigabytes
from engine.library.gguf_file import is_gguf
from engine.library.resolve import folder_of, other_models
from engine.library.store import EMBEDDED, choose, chosen_model


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


app = typer.Typer(help="Models: list, inspect, pull, choose, remove.", no_args_is_help=True)

_INTERRUPTED = 130
Name = Annotated[str, typer.Argument(help="A name from `midspan models list`.")]
NameOrFolder = Annotated[
    str, typer.Argument(help="A name from `midspan models list`, a GGUF file, or a model's folder.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """Show all models that Midspan knows, and which of them are here."""
    try:
        sheets = model_sheet.all_sheets()
    except MidspanError as error:
        leave(error, FAILED)
    with err.status("measuring this machine"):
        memories = device_memories()
    if as_json:
        others = [found_as_json(model) for model in other_models()]
        typer.echo(json.dumps([*(model_sheet.as_json(sheet, memories) for sheet in sheets), *others]))
        return
    out.print(_table(sheets))
    show_other_models(other_models())
    known = [sheet.catalog_entry for sheet in sheets if sheet.catalog_entry is not None]
    for device in answering_devices(memories):
        out.print(answers_on(device, known), soft_wrap=True)
    out.print(
        f"These are estimates of what fits now, and of the time; in time is {DEFAULT_BUDGET_MS} ms, the default of "
        "midspan.budgetMs",
        style="dim",
        soft_wrap=True,
    )
    choice = chosen_model()
    if choice.problem:
        err.print(f"midspan: {choice.problem}", soft_wrap=True)
    if Path(choice.model).is_absolute():
        out.print(f"in use: {choice.model}", soft_wrap=True)
    out.print(
        "get one with: midspan models pull NAME (~ approximate size; ! a licence that you must accept)",
        style="dim",
        soft_wrap=True,
    )


@app.command()
def info(
    model: NameOrFolder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all files of a pulled model and check their sha256.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the facts about a model, and in which precisions it fits this machine. Nothing is loaded."""
    try:
        if (path := gguf_of(model)) is not None:
            if verify and not store.is_pulled(model):
                raise ModelError(f"{path.name} was not pulled, so there are no checksums to compare with")
            if verify:
                _verify(model_sheet.sheet_of_pulled(model))
            show_gguf(gguf_sheet(path), as_json)
            return
        sheet = model_sheet.sheet_of(model)
        if verify:
            _verify(sheet)
        with err.status("measuring this machine's memory"):
            memories = device_memories()
    except MidspanError as error:
        leave(error, FAILED)
    if as_json:
        typer.echo(json.dumps({**model_sheet.as_json(sheet, memories), "verified": verify}))
        return
    out.print(model_sheet.facts(sheet))
    if verify:
        out.print("all files are unchanged since the pull: their sha256 are correct")
    out.print()
    out.print(model_sheet.fits(sheet, memories))


@app.command()
def pull(
    name: Name,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept a licence that is not free, without a question.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the progress as JSON, a line each percent, for programs.")
    ] = False,
) -> None:
    """Download a model from the hub. After an interruption, pull again to continue."""
    try:
        model = _pullable(name)
        is_here = store.is_pulled(name)
        if not is_here:
            _accept(model, accept_licence)
        # Imported only here, because this is the only command that uses the network.
        from engine.library.pull import Puller

        if as_json:
            record = Puller(PullLines(typer.echo)).pull(model, accepted=not model.free)
        else:
            with PullView(err) as view:
                record = Puller(view).pull(model, accepted=not model.free)
    except MidspanError as error:
        leave(error, FAILED)
    except KeyboardInterrupt:
        typer.echo(f"midspan: stopped; the received part is kept, continue with: midspan models pull {name}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        return
    if is_here:
        out.print(f"{name} is here already, at commit {record.commit}", soft_wrap=True)
    else:
        out.print(
            f"{name} is here: {gigabytes(record.size)}, commit {record.commit}, all checksums correct", soft_wrap=True
        )
        out.print(f"make it the default with: midspan models use {name}", style="dim", soft_wrap=True)


@app.command()
def use(model: NameOrFolder) -> None:
    """Make a model the default: for this command line and for editors without a setting `midspan.model`."""
    before = chosen_model().model
    try:
        folder = folder_of(model)
        if is_gguf(folder):
            gguf_sheet(folder)  # raises where it could not be run
        elif not (folder / "config.json").is_file():
            raise ModelError(f"there is no config.json in {folder}; is it a model's folder?")
        has_name = model == EMBEDDED or store.is_pulled(model)
        chosen = model if has_name else str(folder.resolve())
        choose(chosen)
    except MidspanError as error:
        leave(error, FAILED)
    out.print(f"in use from now on: {chosen}", soft_wrap=True)
    if chosen != before:
        _stop_engine(before)


@app.command("tune")
def tune_model(
    model: NameOrFolder,
    workspace: Annotated[
        Path, typer.Argument(help="The folder with your code.", file_okay=False, exists=True)
    ] = Path(),
    minutes: Annotated[float, typer.Option(min=0.1, help="How long to read your code.")] = 1.0,
) -> None:
    """Fit how much the memory of your code is believed with a model that the kernel runs left to right."""
    from engine.memory.mixing_network import new_mixing_of
    from engine.models.left_to_right.model import LeftToRightModel
    from engine.models.load import load
    from engine.training.tuned_mixing import tune

    try:
        place = folder_of(model)
        with err.status("loading the model, then reading your code with it"):
            loaded = load(model, device="cpu")
            if not isinstance(loaded, LeftToRightModel):
                raise ModelError(
                    f"{loaded.info.name} is not tuned here: that is for models that the kernel runs left to right"
                )
            tuned = tune(loaded, workspace, minutes)
        path = new_mixing_of(place)
        tuned.mixing.save(path)
    except MidspanError as error:
        leave(error, FAILED)
    except OSError as error:
        leave(ModelError(f"{path} cannot be written: {error.strerror}"), FAILED)
    out.print(
        f"nats a token on {tuned.rows} tokens of held-out files: the model alone {tuned.alone:.3f}, with the memory as "
        f"for the embedded model {tuned.shipped:.3f}, tuned {tuned.tuned:.3f}",
        soft_wrap=True,
    )
    if not tuned.helps:
        out.print("the memory does not help this model here, so it only drafts from now on")
    out.print(f"kept in {path}; remove it to undo this", soft_wrap=True)
    _stop_engine(model)


@app.command()
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a pulled model, or the files of an interrupted pull."""
    in_use = chosen_model().model == name
    try:
        if name == EMBEDDED:
            raise ModelError("the embedded model is part of Midspan and cannot be removed")
        folder = store.folders_of(name)[0]
        if in_use and not yes:
            raise ModelError(f"{name} is in use; run `midspan models use embedded` first, or remove it with --yes")
        if not yes and not _confirmed(f"Remove {folder}?"):
            raise ModelError(f"nothing was removed; --yes removes {name} without a question")
        freed = store.remove(name)
        if in_use:
            choose(EMBEDDED)
    except MidspanError as error:
        leave(error, FAILED)
    out.print(f"{name} is removed; that frees {gigabytes(freed)}", soft_wrap=True)
    if in_use:
        out.print("in use from now on: embedded")


def _table(sheets: list[ModelSheet]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("family")
    for header in ("params", "size", "context"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("licence")
    table.add_column("here", no_wrap=True)
    for sheet in sheets:
        state = "in part" if store.partial_folder(sheet.name).is_dir() else "no"
        here = "in use" if sheet.in_use else "yes" if sheet.folder else state
        table.add_row(sheet.name, *_columns(sheet), here)
    return table


def _columns(sheet: ModelSheet) -> tuple[str, str, str, str, str]:
    """Return the cells of family, parameters, size, context and licence."""
    known = sheet.catalog_entry
    if known is None:
        return "?", "?", gigabytes(sheet.bytes_here), "?", sheet.record.licence if sheet.record else "?"
    return (
        known.family,
        count_of(known.parameters),
        gigabytes(sheet.bytes_here) if sheet.folder else f"~{gigabytes(known.bytes_to_pull)}",
        f"{known.context_tokens:,}" if known.context_tokens else "?",
        known.licence if known.free else f"{known.licence}!",
    )


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
    if _confirmed(f"{model.licence} is not known to be a free licence. Have you read it, and do you accept it?"):
        return
    raise ModelError(
        f"the licence of {model.name} ({model.licence}) was not accepted; read it at {model.licence_page}, "
        "then pull with --accept-licence"
    )


def _confirmed(question: str) -> bool:
    return sys.stdin.isatty() and typer.confirm(question, err=True)


@app.command("trust")
def trust_host(
    host: Annotated[str, typer.Argument(help="A host, as in api.example.com or 10.0.0.5:8000.")],
    remove: Annotated[bool, typer.Option("--remove", help="No longer trust it.")] = False,
) -> None:
    """Allow a model's server on another machine to get your code. Editors use it after their next restart."""
    try:
        (distrust if remove else trust)(host)
    except MidspanError as error:
        leave(error, FAILED)
    out.print(f"your code may {'not ' if remove else ''}be sent to {host}", soft_wrap=True)


def _verify(sheet: ModelSheet) -> None:
    if sheet.folder is None or sheet.record is None:
        raise ModelError(f"{sheet.name} was not pulled, so there are no checksums to compare with")
    with PullView(err) as view:
        view.begin(sheet.record.size, 0)
        view.check("every file")
        store.verify(sheet.folder, sheet.record, view.advance)


def _stop_engine(model: str) -> None:
    """Ask the engine of the previous default model to end, so that editors start one with the new model."""
    try:
        if asyncio.run(stop_running(EngineOptions(model=resolve_model(model)), "midspan-cli")):
            out.print("the running engine has ended; editors use the new model for their next suggestion")
    except MidspanError as error:
        err.print(f"midspan: the running engine could not be stopped ({error}); restart it in your editor")
