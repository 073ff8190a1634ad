"""`midspan models`: list, inspect, choose, tune and remove models; pull.py pulls them."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from engine.cli import ladder, model_sheet
from engine.cli.console import AsJson, err, labelled, out
from engine.cli.default_model import check_predicts_edits, make_default, make_default_for_edits, stop_engine
from engine.cli.model_sheet import (
    ModelSheet,
    count_of,
    found_as_json,
    gguf_of,
    gguf_sheet,
    show_gguf,
    show_other_models,
)
from engine.cli.pull import PullView, confirmed, pull
from engine.client.address import distrust, trust
from engine.errors import ModelError
from engine.library import store
from engine.library.catalog import DEFAULT_BUDGET_MS, answer_on, place_of
from engine.library.device_memory import DeviceMemory, device_memories, gigabytes
from engine.library.gguf_file import is_gguf
from engine.library.resolve import folder_of, other_models
from engine.library.store import EMBEDDED, NO_MODEL, choose, choose_for_edits, chosen_for_edits, chosen_model

app = typer.Typer(help="Models: list, inspect, pull, choose, remove.", no_args_is_help=True)
app.command()(pull)
app.command("offer", hidden=True)(ladder.offer)

Name = Annotated[str, typer.Argument(help="A name from `midspan models list`.")]
NameOrFolder = Annotated[
    str, typer.Argument(help="A name from `midspan models list`, a GGUF file, or a model's folder.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """Show all models that Midspan knows, and which of them are here."""
    sheets = model_sheet.all_sheets()
    with err.status("measuring this machine"):
        memories = device_memories()
    if as_json:
        others = [found_as_json(model) for model in other_models()]
        typer.echo(json.dumps([*(model_sheet.as_json(sheet, memories) for sheet in sheets), *others]))
        return
    devices = ladder.measured_devices(memories)
    out.print_whole(_table(sheets, devices))
    show_other_models(other_models())
    if devices:
        out.print(
            f"time: about how long an answer takes on {' and on '.join(map(place_of, devices))}, if it fits now; green "
            f"is in time for an editor, {DEFAULT_BUDGET_MS} ms (midspan.budgetMs)",
            style="dim",
            soft_wrap=True,
        )
    choice = chosen_model()
    if choice.problem:
        err.print(f"midspan: {choice.problem}", soft_wrap=True)
    edits = chosen_for_edits()
    if edits.problem:
        err.print(f"midspan: {edits.problem}", soft_wrap=True)
    what = edits.model if edits.model != NO_MODEL else "none; `midspan models use --edits NAME` chooses one"
    out.print(f"for next edits that no rule knows: {what}", soft_wrap=True)
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
    if as_json:
        typer.echo(json.dumps({**model_sheet.as_json(sheet, memories), "verified": verify}))
        return
    out.print(labelled(model_sheet.facts(sheet)))
    if verify:
        out.print("all files are unchanged since the pull: their sha256 are correct")
    out.print()
    out.print(model_sheet.fits(sheet, memories))


@app.command()
def use(
    model: NameOrFolder,
    edits: Annotated[
        bool, typer.Option("--edits", help='For next edits that no rule knows, and "none" for no model.')
    ] = False,
) -> None:
    """Make a model the default: for this command line and for editors without a setting `midspan.model`."""
    if edits and model == NO_MODEL:
        make_default_for_edits(NO_MODEL)
        return
    folder = folder_of(model)
    if is_gguf(folder):
        gguf_sheet(folder)  # raises where it could not be run
    elif not (folder / "config.json").is_file():
        raise ModelError(f"there is no config.json in {folder}; is it a model's folder?")
    if edits:
        check_predicts_edits(folder)
    has_name = model == EMBEDDED or store.is_pulled(model)
    chosen = model if has_name else str(folder.resolve())
    (make_default_for_edits if edits else make_default)(chosen)


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

    place = folder_of(model)
    with err.status("loading the model, then reading your code with it"):
        loaded = load(model, device="cpu")
        if not isinstance(loaded, LeftToRightModel):
            raise ModelError(
                f"{loaded.info.name} is not tuned here: that is for models that the kernel runs left to right"
            )
        tuned = tune(loaded, workspace, minutes)
    path = new_mixing_of(place)
    try:
        tuned.mixing.save(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}") from None
    out.print(
        f"nats a token on {tuned.rows} tokens of held-out files: the model alone {tuned.alone:.3f}, with the memory as "
        f"for the embedded model {tuned.shipped:.3f}, tuned {tuned.tuned:.3f}",
        soft_wrap=True,
    )
    if not tuned.helps:
        out.print("the memory does not help this model here, so it only drafts from now on")
    out.print(f"kept in {path}; remove it to undo this", soft_wrap=True)
    stop_engine(model)


@app.command()
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a pulled model, or the files of an interrupted pull."""
    in_use = chosen_model().model == name
    if name == EMBEDDED:
        raise ModelError("the embedded model is part of Midspan and cannot be removed")
    folder = store.folders_of(name)[0]
    if in_use and not yes:
        raise ModelError(f"{name} is in use; run `midspan models use embedded` first, or remove it with --yes")
    if not yes and not confirmed(f"Remove {folder}?"):
        raise ModelError(f"nothing was removed; --yes removes {name} without a question")
    freed = store.remove(name)
    if in_use:
        choose(EMBEDDED)
    if chosen_for_edits().model == name:
        choose_for_edits(NO_MODEL)
    out.print(f"{name} is removed; that frees {gigabytes(freed)}", soft_wrap=True)
    if in_use:
        out.print("in use from now on: embedded")


def _table(sheets: list[ModelSheet], devices: list[DeviceMemory]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", style="cyan", no_wrap=True)
    for header in ("params", "size", "context"):
        table.add_column(header, justify="right", no_wrap=True)
    for _ in devices:
        table.add_column("time", justify="right", no_wrap=True)
    table.add_column("licence", no_wrap=True)  # its "!" must be seen
    table.add_column("here", no_wrap=True)
    for sheet in sheets:
        state = "in part" if store.partial_folder(sheet.name).is_dir() else "no"
        here = "in use" if sheet.in_use else "yes" if sheet.folder else state
        *columns, licence = _columns(sheet)
        table.add_row(sheet.name, *columns, *(_time(sheet, device) for device in devices), licence, here)
    return table


def _time(sheet: ModelSheet, device: DeviceMemory) -> Text:
    known = sheet.catalog_entry
    if known is None or not known.hub:
        return Text()
    answer = answer_on(device, known)
    if answer is None:
        return Text("too large")
    return Text(answer.time, "green" if answer.in_time else "")


def _columns(sheet: ModelSheet) -> tuple[str, str, str, str]:
    """Return the cells of parameters, size, context and licence."""
    known = sheet.catalog_entry
    if known is None:
        return "?", gigabytes(sheet.bytes_here), "?", sheet.record.licence if sheet.record else "?"
    return (
        count_of(known.parameters),
        gigabytes(sheet.bytes_here) if sheet.folder else f"~{gigabytes(known.bytes_to_pull)}",
        f"{known.context_tokens:,}" if known.context_tokens else "?",
        known.licence if known.free else f"{known.licence}!",
    )


@app.command("trust")
def trust_host(
    host: Annotated[str, typer.Argument(help="A host, as in api.example.com or 10.0.0.5:8000.")],
    remove: Annotated[bool, typer.Option("--remove", help="No longer trust it.")] = False,
) -> None:
    """Allow a model's server on another machine to get your code. Editors use it after their next restart."""
    (distrust if remove else trust)(host)
    out.print(f"your code may {'not ' if remove else ''}be sent to {host}", soft_wrap=True)


def _verify(sheet: ModelSheet) -> None:
    if sheet.folder is None or sheet.record is None:
        raise ModelError(f"{sheet.name} was not pulled, so there are no checksums to compare with")
    with PullView(err) as view:
        view.begin(sheet.record.size, 0)
        view.check("every file")
        store.verify(sheet.folder, sheet.record, view.advance)
