"""`midspan refactor stubs`, `annotate` and `docstrings`: fill the slots of files, from the command line."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from engine.client.connection import EngineClient
from engine.client.launcher import connect_or_start
from engine.errors import EngineUnavailable, MidspanError
from engine.protocol.memory_messages import Learn
from engine.protocol.messages import ModelInfo, plain
from lsp_server.documents.credentials import context_text
from lsp_server.documents.store import Snapshot
from lsp_server.exclusion import why_secret
from lsp_server.languages.registry import language_for
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
)
from lsp_server.refactor.edit.file_edit import counted
from lsp_server.refactor.search import Caps, Found, Target
from lsp_server.settings import Settings
from lsp_server.slots.fill import NO_MODEL, TOGETHER, Filler, fill_slots, gathered, why_unable
from lsp_server.slots.find import read_slots
from lsp_server.slots.slot import Slot, SlotEdit, SlotKind, has_query
from lsp_server.suggest.pipeline import Plan, plan

_CLIENT = "midspan refactor"
_LEARNED = 500
"""Files that the engine reads before it fills: what is done elsewhere in the project says much of what is missing."""


@attrs.frozen
class FileTodo:
    """A file with its slots."""

    target: Target
    snapshot: Snapshot
    slots: Sequence[Slot]


@attrs.define
class Todo:
    """The files with slots. `texts` are all files that were read.

    `reached` has a line for each cap that was met, and `excluded` one for each file that the settings exclude.
    """

    files: list[FileTodo] = attrs.field(factory=list)
    texts: list[tuple[Target, str]] = attrs.field(factory=list)
    reached: list[str] = attrs.field(factory=list)
    excluded: list[str] = attrs.field(factory=list)

    @property
    def places(self) -> int:
        """The number of slots."""
        return sum(len(file.slots) for file in self.files)


@attrs.frozen
class FilledFile:
    """The filled slots of a file."""

    target: Target
    edit: SlotEdit


def slots_of(targets: Sequence[Target], kind: SlotKind, caps: Caps) -> Todo:
    """Return the slots of all files in the languages that have such slots."""
    todo, settings = Todo(), Settings()
    known = [target for target in targets if has_query(language_for("", target.path).id, kind)]
    if len(known) > caps.files:
        todo.reached.append(f"only the first {caps.files} of {len(known)} files were searched")
    left = caps.places
    for target in known[: caps.files]:
        if (reason := why_secret(target.full, settings.exclude)) is not None:
            todo.excluded.append(f"{target.path} is left alone: the file {reason}")
            continue
        if (read := read_slots(target, kind)) is None:
            continue
        snapshot, slots = read
        todo.texts.append((target, snapshot.text))
        if len(slots) > left:
            todo.reached.append(f"the search ended at {caps.places} places")
        if slots[:left]:
            todo.files.append(FileTodo(target, snapshot, slots[:left]))
        left -= len(slots[:left])
        if not left:
            break
    return todo


async def fill_files(
    kind: SlotKind, todo: Todo, model: str, caps: Caps, report: Callable[[], None]
) -> list[FilledFile]:
    """Fill the slots of all files, with the engine of `model`; "" asks no model. `report` is called after each slot.

    Raises MidspanError when the engine cannot be started, fails, or takes longer than the limit.
    """
    needs_model = any(not slot.known for file in todo.files for slot in file.slots)
    if not model or not needs_model:
        return await _fill(todo, None, NO_MODEL, report)
    settings = Settings(model=model)
    client = await connect_or_start(settings.engine_options, _CLIENT)
    try:
        unable = why_unable(kind, client.welcome.model)
        if unable is not None:
            return await _fill(todo, None, unable, report)
        async with asyncio.timeout(caps.seconds):
            if not client.welcome.model.server:
                await _learn(client, todo)
            return await _fill(todo, (client, settings), "", report)
    except TimeoutError:
        raise EngineUnavailable(
            f"the fills took more than {caps.seconds:g} seconds; nothing was changed; raise --max-seconds"
        ) from None
    finally:
        await client.close()


async def _fill(
    todo: Todo, engine: tuple[EngineClient, Settings] | None, why: str, report: Callable[[], None]
) -> list[FilledFile]:
    room = asyncio.Semaphore(TOGETHER)

    async def fill(file: FileTodo) -> FilledFile:
        filler = _filler(*engine, file.target, room) if engine is not None else None
        return FilledFile(file.target, await fill_slots(file.snapshot, file.slots, filler, report, why))

    return await gathered([fill(file) for file in todo.files])


def _filler(client: EngineClient, settings: Settings, target: Target, room: asyncio.Semaphore) -> Filler:
    model: ModelInfo = client.welcome.model

    def plan_of(snapshot: Snapshot, offset: int, settings: Settings, candidates: int) -> Plan:
        workspace = target.folder if not model.server else ""
        return plan(snapshot, offset, model, settings, path=target.path, candidates=candidates, workspace=workspace)

    return Filler(plan_of, client.fill, settings, room)


async def _learn(client: EngineClient, todo: Todo) -> None:
    """Have the engine read the files, as it does for an editor."""
    texts = todo.texts[:_LEARNED]
    await gathered(
        [
            client.learn(Learn(target.folder, target.path, context_text(text), language_for("", target.path).id))
            for target, text in texts
        ]
    )


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


_STATUS = """

The exit status is 0 if every place is filled, 3 if some were left out, 1 if a file was not written or the engine
failed, and 2 for bad input.
"""


def _command(kind: SlotKind, doc: str) -> Callable[..., None]:
    """Return the command that fills slots of a kind. `doc` is its help."""

    def command(
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
        _run(kind, paths, _Output(diff, apply, json, doubtful), model, Caps(max_files, max_places, max_seconds))

    command.__doc__ = doc + _STATUS
    return command


stubs = _command("stubs", "Write the bodies of functions that only say that they are to be written.")
docstrings = _command(
    "docstrings", "Add the missing docstrings and doc comments, in files that have some. It takes a large model."
)


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


def as_json(filled: Sequence[FilledFile], reached: Sequence[str]) -> str:
    """Return what was filled as JSON. Lines count from 1; `text` takes the place of the characters `start` to `end`."""
    files = [
        {
            "path": _path(one),
            "digest": one.edit.digest,
            "places": [
                {
                    "line": place.span.line + 1,
                    "start": place.edit.start,
                    "end": place.edit.end,
                    "text": place.edit.text,
                    "reason": place.reason,
                    "byModel": place.by_model,
                    "doubtful": place.doubtful,
                }
                for place in one.edit.places
            ],
            "leftOut": [{"line": each.span.line + 1, "reason": each.reason} for each in one.edit.left_out],
        }
        for one in filled
    ]
    counts = {
        "places": sum(len(one.edit.places) for one in filled),
        "doubtful": sum(place.doubtful for one in filled for place in one.edit.places),
        "leftOut": sum(len(one.edit.left_out) for one in filled),
    }
    return json.dumps({"files": files, **counts, "reached": list(reached)})


def lines(filled: Sequence[FilledFile], *, with_doubtful: bool) -> Iterator[str]:
    """Yield one line for each slot that was left out or is doubtful."""
    for one in filled:
        path = _path(one)
        for place in one.edit.places:
            if place.doubtful and not with_doubtful:
                yield f"{path}:{place.span.line + 1}: doubtful: `{place.edit.text.strip(' :=>-')}`, {place.reason}"
        for omission in one.edit.left_out:
            yield f"{path}:{omission.span.line + 1}: left out: {omission.reason}"


def _path(one: FilledFile) -> str:
    return shown_path(Found(one.target, one.edit.file_edit(with_doubtful=True)))
