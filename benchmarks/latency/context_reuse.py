"""How many tokens of a hole's context are read again when a user types, and when the cursor moves or jumps?

Run it as `python benchmarks/latency/context_reuse.py FILE...`: it types and moves through real files and lays each hole
out as the model does, without running the network. The files are the workspace of each other. Reading a token
costs a third to a whole millisecond.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import random
from collections.abc import Callable, Iterator
from typing import Annotated

import attrs
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from engine.fill.stream import StreamModel
from engine.memory.mixing_network import MixingNetwork
from engine.memory.workspace import EngineMemories
from engine.models.load import load
from engine.protocol.messages import Fill
from engine.schedule.caches import common_prefix

_WORKSPACE = "workspace"
Place = tuple[str, int]
"""A document's text, and the cursor in it."""


@attrs.frozen
class Event:
    """A thing that users do: from a place before to the place after it."""

    name: str
    happen: Callable[[str, int, random.Random], Place | None]


def _typed(text: str, offset: int, rng: random.Random) -> Place | None:
    return text[:offset] + rng.choice("abcdefgh") + text[offset:], offset + 1


def _entered(text: str, offset: int, rng: random.Random) -> Place | None:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    indent = line[: len(line) - len(line.lstrip())]
    return text[:offset] + "\n" + indent + text[offset:], offset + 1 + len(indent)


def _jumped(lines: int) -> Callable[[str, int, random.Random], Place | None]:
    def jump(text: str, offset: int, rng: random.Random) -> Place | None:
        count = lines * rng.choice((-1, 1))
        for _ in range(abs(count)):
            offset = text.find("\n", offset + 1) if count > 0 else text.rfind("\n", 0, offset)
            if offset < 0:
                return None
        return text, offset

    return jump


def _edited_above(text: str, offset: int, rng: random.Random) -> Place | None:
    """An edit 40 lines above, after which the cursor is back."""
    at = offset
    for _ in range(40):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return None
    return text[:at] + " # note" + text[at:], offset + 7


EVENTS = (
    Event("a key", _typed),
    Event("Enter", _entered),
    Event("1 line up or down", _jumped(1)),
    Event("5 lines", _jumped(5)),
    Event("20 lines", _jumped(20)),
    Event("100 lines", _jumped(100)),
    Event("an edit 40 lines above", _edited_above),
)


@attrs.frozen
class Contexts:
    """Lays holes out as an engine does that knows all files."""

    model: StreamModel
    memories: EngineMemories

    @classmethod
    def of(cls, model: StreamModel, texts: dict[Path, str]) -> "Contexts":
        memories = EngineMemories(model, model.tokenizer, MixingNetwork.shipped(), 1 << 30, model.memory_use)
        for path, text in texts.items():
            memories.learn(_WORKSPACE, str(path), np.array(memories.tokenize(text), np.int32))
        return cls(model, memories)

    def __call__(self, text: str, offset: int, path: Path) -> list[int]:
        fill = Fill(
            id=0, prefix=text[:offset], suffix=text[offset:], path=str(path), max_tokens=64, workspace=_WORKSPACE
        )
        return self.model.lay_out(attrs.evolve(fill, snippets=self.memories.related(fill))).context


def _read_again(contexts: Contexts, texts: dict[Path, str], count: int, event: Event) -> Iterator[int]:
    rng, files = random.Random(3), list(texts)
    while count:
        path = rng.choice(files)
        text = texts[path]
        offset = text.find("\n", rng.randrange(len(text)))
        place = event.happen(text, offset, rng) if offset >= 0 else None
        if place is None:
            continue
        before, after = contexts(text, offset, path), contexts(*place, path)
        yield len(after) - common_prefix(before, after)
        count -= 1


def main(
    files: Annotated[list[Path], typer.Argument(help="Source files of 200 lines and more.")],
    model: Annotated[str, typer.Option(help='"embedded", a folder, or a GGUF.')] = "embedded",
    count: Annotated[int, typer.Option(help="Events of each kind.")] = 200,
) -> None:
    """Print how many tokens are read again after each kind of event: median and 95th percentile."""
    loaded = load(model)
    assert isinstance(loaded, StreamModel)
    texts = {path: path.read_text() for path in files}
    contexts = Contexts.of(loaded, texts)
    long = {path: text for path, text in texts.items() if text.count("\n") >= 200}
    table = Table("event", "p50", "p95", title=f"tokens read again, of {loaded.info.context_tokens}")
    for event in EVENTS:
        again = list(_read_again(contexts, long, count, event))
        table.add_row(event.name, *(f"{np.percentile(again, share):.0f}" for share in (50, 95)))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
