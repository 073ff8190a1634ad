"""The slots of many files, filled by an engine that is started for it, as the command line does it."""

import asyncio
from collections.abc import Callable, Sequence

import attrs

from engine.client.connection import EngineClient
from engine.client.launcher import connect_or_start
from engine.errors import EngineUnavailable
from engine.protocol.memory_messages import Learn
from engine.protocol.messages import ModelInfo
from lsp_server.documents.credentials import context_text
from lsp_server.documents.store import Snapshot
from lsp_server.exclusion import why_secret
from lsp_server.languages.registry import language_for
from lsp_server.refactor.search import Caps, Target, is_generated
from lsp_server.settings import Settings
from lsp_server.slots.fill import NO_MODEL, TOGETHER, Filler, fill_slots, gathered, why_unable
from lsp_server.slots.find import closed_snapshot, find_slots, in_style
from lsp_server.slots.slot import Slot, SlotEdit, SlotKind, has_query
from lsp_server.suggest.pipeline import Plan, plan
from lsp_server.workspace.reading import read_text

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
        full = target.full
        if (reason := why_secret(full, settings.exclude)) is not None:
            todo.excluded.append(f"{target.path} is left alone: the file {reason}")
            continue
        text = read_text(target.folder, target.path)
        if text is None or is_generated(text):
            continue
        todo.texts.append((target, text))
        snapshot = closed_snapshot(full, text)
        slots = in_style(snapshot, find_slots(snapshot, kind), kind)
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
