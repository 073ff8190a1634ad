"""How good the ways are that need no other program: word completion, runs of tokens, the model alone, and both."""

from collections.abc import Sequence

import attrs

from benchmarks.quality.quality import in_workspaces
from benchmarks.quality.typing_tasks import Suggest, TypingTask, places
from benchmarks.quality.typing_ways import RUNS, WORDS, type_all
from benchmarks.quality.typists import RunCompletion, WordCompletion
from engine.corpus.languages import File
from engine.evaluation.measure import Workspaces, measure
from engine.evaluation.rows import Task, held_out
from engine.evaluation.summary import summarize
from engine.fill.strategies import DEFAULT
from engine.models.embedded.model import EmbeddedModel
from engine.protocol.confidence import FREE
from lsp_server.settings import Settings

ALONE, BOTH = "model alone", "workspace"
_TOGETHER = 4


@attrs.frozen
class WayQuality:
    """Shares: rests of lines that are exactly the author's, keys saved while typing, right ones among what is shown."""

    way: str
    exact: float
    saved: float
    right: float


async def quality_of_ways(
    model: EmbeddedModel, name: str, files: Sequence[File], language: str, holes: int, count: int
) -> list[WayQuality]:
    """Fill `holes` rests of lines and type at `count` places of held-out files in each way."""
    tasks, typed = held_out(list(files), language, "rest of line", holes), places(files, language, count)
    found = []
    for way in (WORDS, RUNS, ALONE, BOTH):
        workspaces = Workspaces.of(model, name, files)
        exact = await _exact(model, workspaces, tasks, way)
        typing = (await type_all(model, workspaces, typed, way, Settings().gate)).typing
        found.append(WayQuality(way, exact, typing.saved, typing.right))
    return found


async def _exact(model: EmbeddedModel, workspaces: Workspaces, tasks: list[Task], way: str) -> float:
    if way in (ALONE, BOTH):
        asked = in_workspaces(tasks, workspaces) if way == BOTH else tasks
        rows = await measure(model, asked, (DEFAULT,), _TOGETHER, workspaces.memories if way == BOTH else None)
        return summarize(rows)[0].exact
    right = 0
    for task in in_workspaces(tasks, workspaces):
        hole = task.hole
        line = TypingTask(hole.path, hole.language, hole.prefix, hole.middle, hole.suffix)
        # Free, as for the model: exact is about what would be written, shown or not.
        suggest: Suggest = (
            WordCompletion(line) if way == WORDS else RunCompletion(workspaces, line, task.workspace, FREE)
        )
        right += (await suggest(0)).text.strip() == hole.middle.strip()
    return right / len(tasks)
