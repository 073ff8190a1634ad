"""What the memory of the workspace is worth while typing: hidden packages typed back, with and without it.

Run it as `python benchmarks/memory_typing.py --corpus runs/small/corpus`. The workspace of a task is its package
without its own file. Word completion, which every editor has, types the same lines. Of the moments at which showing
nothing was right, "quiet" is the share that showed nothing; word completion hides no candidate, so it has none.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from suggester import Suggester

from engine.corpus import corpus
from engine.corpus.languages import File
from engine.evaluation.keystrokes import Screen, Suggest, Typing, TypingTask, places, tally, type_place
from engine.library.resolve import EMBEDDED_FOLDER
from engine.memory.engine_memories import EngineMemories
from engine.memory.gate import MemoryGate
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load
from engine.protocol.messages import MemoryName, RuleName
from engine.schedule.scheduler import Scheduler
from engine.training.memory_rows import packages
from lsp_server.settings import Settings
from lsp_server.suggest.restraint import DOUBT, Restraint

LANGUAGES = ("python", "typescript", "go", "javascript", "rust", "java")
MODES: tuple[tuple[str, MemoryName], ...] = (("model alone", "off"), ("file", "file"), ("workspace", "workspace"))
_WORD = re.compile(r"[^\W\d]\w*")


@attrs.frozen
class Contender:
    """One way to type. `memory` is the setting; `rule` how holes are filled; `doubt` raises the gate of a line."""

    name: str
    memory: MemoryName
    rule: RuleName
    gate: float
    doubt: float = DOUBT


class WordCompletion:
    """The most frequent word of the file that begins as the word before the cursor does, after two typed letters."""

    def __init__(self, task: TypingTask) -> None:
        self._task = task

    async def __call__(self, typed: int) -> Screen:
        before = self._task.above + self._task.text[:typed]
        begun = re.search(r"[^\W\d]\w*$", before)
        if begun is None or len(begun[0]) < 2 or re.match(r"\w", self._task.text[typed:]) is None:
            return Screen()
        words = Counter(_WORD.findall(before[: begun.start()] + " " + self._task.below))
        longer = [word for word in words if word.startswith(begun[0]) and word != begun[0]]
        if not longer:
            return Screen()
        best = max(longer, key=lambda word: words[word])
        return Screen(best[len(begun[0]) :], True)


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with held-out.msgpack.")] = Path(
        "runs/small/corpus"
    ),
    count: Annotated[int, typer.Option(help="Tasks of three lines for each language.")] = 30,
    language: Annotated[list[str] | None, typer.Option(help="Languages to type.")] = None,
    gate: Annotated[list[float] | None, typer.Option(help="Gates to try.")] = None,
    doubt: Annotated[
        list[float] | None, typer.Option(help="Also try these after wrong starts; 1 does nothing.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of the model.")] = 1,
) -> None:
    """Type the same lines in every way and print how many keys each saves."""
    files = corpus.load(corpus_folder, "held-out")
    model = load("embedded", threads=threads)
    if not isinstance(model, EmbeddedModel):
        raise typer.BadParameter("the embedded model is needed")
    gates = gate or [0.7, 0.85]
    contenders = [
        Contender(f"{name}, {rule}, gate {each}", memory, rule, each)
        for each in gates
        for name, memory in MODES
        for rule in ("verify",)
    ]
    contenders += [Contender(f"model alone, default, gate {each}", "off", "default", each) for each in gates]
    contenders += [
        Contender(f"workspace, verify, gate {each}, doubt {number}", "workspace", "verify", each, number)
        for each in gates
        for number in doubt or []
    ]
    console = Console(highlight=False)
    for name in language or LANGUAGES:
        table = Table("", "keys saved", "shown at", "right", "quiet", "whole lines among right", title=name)
        tasks = places(files, name, count)
        _add(table, "word completion", asyncio.run(_type_all(tasks, [WordCompletion(task) for task in tasks])))
        for contender in contenders:
            _add(table, contender.name, asyncio.run(_typed(model, files, tasks, contender)))
        console.print(table)


async def _typed(model: EmbeddedModel, files: list[File], tasks: list[TypingTask], contender: Contender) -> Typing:
    settings = attrs.evolve(Settings(), memory=contender.memory, rule=contender.rule, gate=contender.gate)
    gate = MemoryGate.load(EMBEDDED_FOLDER / "memory.safetensors")
    memories = EngineMemories(model, model.tokenizer, gate, 256 << 20)
    of_path = {file.path: part for part in packages(files) for file in part}
    learned: set[str] = set()
    scheduler = Scheduler(model, memories=memories)
    await scheduler.start()
    suggesters: list[Suggest] = []
    try:
        for task in tasks:
            package = of_path.get(task.path, [])
            workspace = package[0].path if package else ""
            if workspace and workspace not in learned and contender.memory == "workspace":
                for file in package:
                    memories.learn(workspace, file.path, np.array(memories.tokenize(file.text), np.int32))
                learned.add(workspace)
            restraint = Restraint(contender.doubt)
            suggesters.append(Suggester(scheduler, model.info, task, settings, workspace, restraint))
        return await _type_all(tasks, suggesters)
    finally:
        await scheduler.stop()


async def _type_all(tasks: Sequence[TypingTask], suggesters: Sequence[Suggest]) -> Typing:
    return tally([await type_place(task, suggest) for task, suggest in zip(tasks, suggesters, strict=True)])


def _add(table: Table, name: str, typing: Typing) -> None:
    share = typing.whole / typing.right if typing.right else 0.0
    quiet = f"{typing.quiet:.1%}" if typing.quiet else "-"
    table.add_row(name, f"{typing.saved:.1%}", f"{typing.shown:.1%}", f"{typing.right:.1%}", quiet, f"{share:.1%}")


if __name__ == "__main__":
    typer.run(main)
