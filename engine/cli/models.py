"""`midspan models`: which models there are, what fits, and how they come, go and are chosen."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from engine.cli import model_sheet
from engine.cli.console import FAILED, err, leave, out
from engine.cli.model_sheet import ModelSheet, count_of
from engine.cli.options import AsJson
from engine.cli.pull_view import PullView
from engine.client.address import resolve_model
from engine.client.launcher import EngineOptions, stop_running
from engine.errors import MidspanError, ModelError
from engine.library import store
from engine.library.catalog import CatalogModel, catalog
from engine.library.chosen_model import EMBEDDED, choose, chosen_model
from engine.library.device_memory import gigabytes, rooms
from engine.library.resolve import folder_of

app = typer.Typer(help="Models: list, inspect, pull, choose, remove.", no_args_is_help=True)

_INTERRUPTED = 130
Name = Annotated[str, typer.Argument(help="A name that `midspan models list` shows.")]
NameOrFolder = Annotated[str, typer.Argument(help="A name that `midspan models list` shows, or a model's folder.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """Show every model that Midspan knows, and which are here."""
    try:
        sheets = model_sheet.all_sheets()
    except MidspanError as error:
        leave(error, FAILED)
    if as_json:
        typer.echo(json.dumps([model_sheet.as_json(sheet, []) for sheet in sheets]))
        return
    out.print(_table(sheets))
    choice = chosen_model()
    if choice.problem:
        err.print(f"midspan: {choice.problem}", soft_wrap=True)
    if Path(choice.model).is_absolute():
        out.print(f"in use: {choice.model}", soft_wrap=True)
    out.print(
        "get one with: midspan models pull NAME (~ about; ! licence is shown and asked)", style="dim", soft_wrap=True
    )


@app.command()
def info(
    model: NameOrFolder,
    verify: Annotated[bool, typer.Option("--verify", help="Read all of a pulled model and check its sha256.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show all about a model, and in which precision it fits this machine; nothing is loaded."""
    try:
        sheet = model_sheet.sheet_of(model)
        if verify:
            _verify(sheet)
        with err.status("looking at this machine's memory"):
            memories = rooms()
    except MidspanError as error:
        leave(error, FAILED)
    if as_json:
        typer.echo(json.dumps({**model_sheet.as_json(sheet, memories), "verified": verify}))
        return
    out.print(model_sheet.facts(sheet))
    if verify:
        out.print("all files are what was pulled: their sha256 were compared")
    out.print()
    out.print(model_sheet.fits(sheet, memories))


@app.command()
def pull(
    name: Name,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="Accept a licence that is not a free one, unasked.")
    ] = False,
) -> None:
    """Bring a model here from the hub. What is interrupted goes on with the next pull."""
    try:
        model = _pullable(name)
        already = store.is_pulled(name)
        if not already:
            _accept(model, accept_licence)
        # Imported when it is needed: this is the one command that goes to the network.
        from engine.library.pull import Puller

        with PullView(err) as view:
            record = Puller(view).pull(model, accepted=not model.free)
    except MidspanError as error:
        leave(error, FAILED)
    except KeyboardInterrupt:
        typer.echo(f"midspan: stopped; what has arrived is kept, go on with: midspan models pull {name}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    if already:
        out.print(f"{name} is here already, at commit {record.commit}", soft_wrap=True)
    else:
        out.print(f"{name} is here: {gigabytes(record.size)}, commit {record.commit}, checked", soft_wrap=True)
        out.print(f"take it everywhere with: midspan models use {name}", style="dim", soft_wrap=True)


@app.command()
def use(model: NameOrFolder) -> None:
    """Take a model wherever none is named: in editors whose setting `midspan.model` is left alone, and here."""
    before = chosen_model().model
    try:
        folder = folder_of(model)
        if not (folder / "config.json").is_file():
            raise ModelError(f"no config.json is in {folder}; is it a model's folder?")
        named = model == EMBEDDED or store.is_pulled(model)
        chosen = model if named else str(folder.resolve())
        choose(chosen)
    except MidspanError as error:
        leave(error, FAILED)
    out.print(f"in use from now on: {chosen}", soft_wrap=True)
    if chosen != before:
        _dismiss(before)


@app.command()
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a pulled model, or what an interrupted pull has left."""
    in_use = chosen_model().model == name
    try:
        if name == EMBEDDED:
            raise ModelError("the embedded model comes with Midspan and stays")
        folder = store.folder_for(name)
        if in_use and not yes:
            raise ModelError(f"{name} is in use; midspan models use embedded first, or remove it with --yes")
        if not yes and not _confirmed(f"Remove {folder}?"):
            raise ModelError(f"nothing was removed; --yes removes {name} unasked")
        freed = store.remove(name)
        if in_use:
            choose(EMBEDDED)
    except MidspanError as error:
        leave(error, FAILED)
    out.print(f"{name} is removed; {gigabytes(freed)} are free again", soft_wrap=True)
    if in_use:
        out.print("in use from now on: embedded")


def _table(sheets: list[ModelSheet]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("family")
    for header in ("weights", "size", "context"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("licence")
    table.add_column("here", no_wrap=True)
    for sheet in sheets:
        here = "in use" if sheet.in_use else "yes" if sheet.folder else _begun(sheet.name)
        table.add_row(sheet.name, *_columns(sheet), here)
    return table


def _columns(sheet: ModelSheet) -> tuple[str, str, str, str, str]:
    """Return family, parameters, size, context and licence."""
    known = sheet.known
    if known is None:
        return "?", "?", gigabytes(sheet.bytes_here), "?", sheet.record.licence if sheet.record else "?"
    return (
        known.family,
        count_of(known.parameters),
        gigabytes(sheet.bytes_here) if sheet.folder else f"~{gigabytes(known.bytes_to_pull)}",
        f"{known.context_tokens:,}" if known.context_tokens else "?",
        known.licence if known.free else f"{known.licence} !",
    )


def _begun(name: str) -> str:
    return "in part" if store.partial_folder(name).is_dir() else "no"


def _pullable(name: str) -> CatalogModel:
    if name == EMBEDDED:
        raise ModelError("the embedded model comes with Midspan; there is nothing to pull")
    if name not in catalog():
        raise ModelError(
            f"no model {name!r} to pull; there are {', '.join(key for key in catalog() if key != EMBEDDED)}"
        )
    return catalog()[name]


def _accept(model: CatalogModel, accepted: bool) -> None:
    """Show the licence, and ask where it is not a free one. Raises ModelError where it is refused."""
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


def _verify(sheet: ModelSheet) -> None:
    if sheet.folder is None or sheet.record is None:
        raise ModelError(f"{sheet.name} was not pulled, so there are no checksums to compare it with")
    with PullView(err) as view:
        view.begin(sheet.record.size, 0)
        view.check("every file")
        store.verify(sheet.folder, sheet.record, view.advance)


def _dismiss(model: str) -> None:
    """Ask the engine of the model that was in use before to leave, so that editors come back to the new one."""
    try:
        if asyncio.run(stop_running(EngineOptions(model=resolve_model(model)), "midspan-cli")):
            out.print("the engine that ran has left; editors take the new model with their next suggestion")
    except MidspanError as error:
        err.print(f"midspan: the engine that runs could not be told ({error}); restart it in your editor")
