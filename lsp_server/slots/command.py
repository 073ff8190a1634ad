"""`midspan refactor stubs`, `annotate` and `docstrings`: fill the slots of files, from the command line."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from engine.errors import MidspanError
from engine.protocol.messages import plain
from lsp_server.refactor.command import (
    FAILED,
    LEFT_OUT,
    as_diff,
    check_form,
    leave,
    save_all,
    shown,
    shown_path,
    targets_of,
    to_json,
)
from lsp_server.refactor.file_edit import counted
from lsp_server.refactor.search import Caps, Found
from lsp_server.settings import Settings
from lsp_server.slots.files import FilledFile, Todo, fill_files, slots_of
from lsp_server.slots.slot import SlotKind

_Paths = Annotated[list[Path], typer.Argument(help="Files, and folders whose files git tracks or does not ignore.")]
_Diff = Annotated[bool, typer.Option("--diff", help="Print a unified diff. This is the default.")]
_Apply = Annotated[bool, typer.Option("--apply", help="Write the files.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON: places, and what was left out.")]
_Doubtful = Annotated[bool, typer.Option("--doubtful", help="Take the doubtful places too.")]
_Model = Annotated[str, typer.Option("--model", help="The model, as in `midspan models list`, or a folder.")]
_NoModel = Annotated[bool, typer.Option("--no-model", help="Only what the files themselves say; no model is asked.")]
_MaxPlaces = Annotated[int, typer.Option(min=1, help="The most places.")]
_MaxFiles = Annotated[int, typer.Option(min=1, help="The most files that are searched.")]
_MaxSeconds = Annotated[float, typer.Option(min=0.1, help="The most seconds of filling.")]
_MODEL, _CAPS = Settings().model, Caps(seconds=600.0)
_err = Console(stderr=True, highlight=False, markup=False, emoji=False)


@attrs.frozen
class _Output:
    """What the user asked for: at most one of the three forms, and whether doubtful places count."""

    diff: bool
    apply: bool
    json: bool
    doubtful: bool


def stubs(
    paths: _Paths,
    diff: _Diff = False,
    apply: _Apply = False,
    json: _Json = False,
    doubtful: _Doubtful = False,
    model: _Model = _MODEL,
    max_places: _MaxPlaces = _CAPS.places,
    max_files: _MaxFiles = _CAPS.files,
    max_seconds: _MaxSeconds = _CAPS.seconds,
) -> None:
    """Write the bodies of functions that only say that they are to be written.

    The exit status is 0 if every place is filled, 3 if some were left out, 1 if a file was not written or the engine
    failed, and 2 for bad input.
    """
    caps = Caps(max_files, max_places, max_seconds)
    _run("stubs", paths, _Output(diff, apply, json, doubtful), model, caps)


def annotate(
    paths: _Paths,
    diff: _Diff = False,
    apply: _Apply = False,
    json: _Json = False,
    doubtful: _Doubtful = False,
    model: _Model = _MODEL,
    no_model: _NoModel = False,
    max_places: _MaxPlaces = _CAPS.places,
    max_files: _MaxFiles = _CAPS.files,
    max_seconds: _MaxSeconds = _CAPS.seconds,
) -> None:
    """Add the missing annotations of Python and TypeScript, in files and folders that have annotations.

    The exit status is 0 if every place is filled, 3 if some were left out, 1 if a file was not written or the engine
    failed, and 2 for bad input.
    """
    caps = Caps(max_files, max_places, max_seconds)
    _run("annotations", paths, _Output(diff, apply, json, doubtful), "" if no_model else model, caps)


def docstrings(
    paths: _Paths,
    diff: _Diff = False,
    apply: _Apply = False,
    json: _Json = False,
    doubtful: _Doubtful = False,
    model: _Model = _MODEL,
    max_places: _MaxPlaces = _CAPS.places,
    max_files: _MaxFiles = _CAPS.files,
    max_seconds: _MaxSeconds = _CAPS.seconds,
) -> None:
    """Add the missing docstrings and doc comments, in files that have some. It takes a large model.

    The exit status is 0 if every place is filled, 3 if some were left out, 1 if a file was not written or the engine
    failed, and 2 for bad input.
    """
    caps = Caps(max_files, max_places, max_seconds)
    _run("docstrings", paths, _Output(diff, apply, json, doubtful), model, caps)


def _run(kind: SlotKind, paths: list[Path], output: _Output, model: str, caps: Caps) -> None:
    """Fill the slots of all files, and show or write them. `model` "" asks none."""
    try:
        check_form(output.diff, output.apply, output.json)
        todo = slots_of(targets_of(paths), kind, caps)
    except MidspanError as error:
        leave(error)
    try:
        filled = _filled(kind, todo, model, caps)
    except MidspanError as error:
        typer.echo(plain(f"midspan: {error}"), err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo("midspan: interrupted; nothing was changed", err=True)
        raise typer.Exit(130) from None
    found = [Found(one.target, one.edit.file_edit(with_doubtful=output.doubtful)) for one in filled]
    failed = False
    if output.json:
        typer.echo(as_json(filled, todo.reached))
    elif output.apply:
        failed = not save_all(found)
    else:
        typer.echo(shown(as_diff(found)), nl=False)
    doubtful = sum(place.doubtful for one in filled for place in one.edit.places) if not output.doubtful else 0
    for line in lines(filled, with_doubtful=output.doubtful):
        typer.echo(line, err=True)
    for line in todo.excluded:
        typer.echo(f"midspan: {line}", err=True)
    for line in todo.reached:
        typer.echo(f"midspan: {line}; raise --max-files, --max-places or --max-seconds", err=True)
    places, files = sum(len(one.edit.places) for one in found), sum(bool(one.edit.places) for one in found)
    left_out = sum(len(one.edit.left_out) for one in found)
    more = f", {doubtful} doubtful: --doubtful takes them" if doubtful else ""
    done = "filled" if output.apply and not failed else "found"
    typer.echo(f"{counted(places, 'place')} in {counted(files, 'file')} {done}, {left_out} left out{more}", err=True)
    if failed:
        raise typer.Exit(FAILED)
    if left_out or doubtful or todo.reached:
        raise typer.Exit(LEFT_OUT)


def _filled(kind: SlotKind, todo: Todo, model: str, caps: Caps) -> list[FilledFile]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("places"))
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as bar:
        task = bar.add_task("filling", total=todo.places)
        return asyncio.run(fill_files(kind, todo, model, caps, lambda: bar.advance(task)))


@attrs.frozen
class PlaceReport:
    """A filled slot: `text` takes the place of the characters from `start` to `end`. `line` counts from 1."""

    line: int
    start: int
    end: int
    text: str
    reason: str
    by_model: bool
    doubtful: bool


@attrs.frozen
class OmissionReport:
    """A slot that was left out."""

    line: int
    reason: str


@attrs.frozen
class FileReport:
    """The slots of a file; `digest` is the SHA-256 of its text before."""

    path: str
    digest: str
    places: list[PlaceReport]
    left_out: list[OmissionReport]


@attrs.frozen
class Report:
    """The JSON of a command. Its names are camelCase there."""

    files: list[FileReport]
    places: int
    doubtful: int
    left_out: int
    reached: list[str]


def as_json(filled: Sequence[FilledFile], reached: Sequence[str]) -> str:
    """Return what was filled as JSON."""
    files = [_file(one) for one in filled]
    doubtful = sum(place.doubtful for file in files for place in file.places)
    places, left_out = sum(len(file.places) for file in files), sum(len(file.left_out) for file in files)
    return to_json(Report(files, places, doubtful, left_out, list(reached)))


def lines(filled: Sequence[FilledFile], *, with_doubtful: bool) -> Iterator[str]:
    """Yield one line for each slot that was left out or is doubtful."""
    for one in filled:
        path = _path(one)
        for place in one.edit.places:
            if place.doubtful and not with_doubtful:
                yield f"{path}:{place.span.line + 1}: doubtful: `{place.edit.text.strip(' :=>-')}`, {place.reason}"
        for omission in one.edit.left_out:
            yield f"{path}:{omission.span.line + 1}: left out: {omission.reason}"


def _file(one: FilledFile) -> FileReport:
    places = [
        PlaceReport(
            place.span.line + 1,
            place.edit.start,
            place.edit.end,
            place.edit.text,
            place.reason,
            place.by_model,
            place.doubtful,
        )
        for place in one.edit.places
    ]
    left_out = [OmissionReport(omission.span.line + 1, omission.reason) for omission in one.edit.left_out]
    return FileReport(_path(one), one.edit.digest, places, left_out)


def _path(one: FilledFile) -> str:
    return shown_path(Found(one.target, one.edit.file_edit(with_doubtful=True)))
