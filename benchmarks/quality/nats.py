"""How likely is the author's code to the model alone? Nats a character of middles, with and without what is below.

Run it as `python benchmarks/quality/nats.py --corpus runs/judge/corpus`; `--model` can be given several times, and
`--context` measures other lengths of the context. The kernel computes it, with the weights as they ship. A middle
counts with its end, as one character more. Equal options measure equal holes, so models can be compared hole by hole.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import json
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import attrs
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from engine.corpus import corpus
from engine.corpus.holes import TrainingHole
from engine.evaluation.measure import Workspaces
from engine.evaluation.rows import TWIN, Task, held_out
from engine.fill.interface import expect_type
from engine.fill.sampler import Query
from engine.fill.stream import StreamModel, StreamPass
from engine.library.resolve import EMBEDDED_FOLDER
from engine.models import load as registry
from engine.protocol.messages import Fill

_LANGUAGES = ("python", "typescript", "javascript", "rust")
_KINDS = ("whole line", "rest of line", "inside", "before word", "lines")
_CANVAS = 8


@attrs.frozen
class Nats:
    """Means over holes of one kind: nats a character with both sides and related code of the package, with both sides,
    and with the code above alone; of canvases that are all masks, nats a token and the share of first guesses that are
    the author's."""

    related: float
    both: float
    above: float
    canvas: float
    first: float


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with judge.msgpack.")],
    models: Annotated[list[Path] | None, typer.Option("--model", help="By default what ships.")] = None,
    count: Annotated[int, typer.Option(help="Holes of each language and kind.")] = 60,
    context: Annotated[list[int] | None, typer.Option(help="Tokens of the context instead of the model's.")] = None,
) -> None:
    """Print a table for each model and length of context."""
    console, files = Console(highlight=False, width=120), corpus.load(corpus_folder, "judge")
    for folder in models or [EMBEDDED_FOLDER]:
        for length in context or [0]:
            with _of_length(folder, length) as changed:
                model = expect_type(registry.load(str(changed)), StreamModel)  # type: ignore[type-abstract]
            workspaces = Workspaces.of(model, str(folder), files)
            table = Table(
                *("language", "kind", "and related", "both sides", "above only", "canvas, nats a token", "first right")
            )
            table.title = f"{folder}, context of {model.info.context_tokens}"
            for language in _LANGUAGES:
                for kind in _KINDS:
                    if holes := _holes(files, language, kind, count):
                        values = (f"{value:.3f}" for value in attrs.astuple(_measured(workspaces, holes)))
                        table.add_row(language, kind, *values)
            console.print(table)


@contextmanager
def _of_length(folder: Path, length: int) -> Iterator[Path]:
    """Give a folder with the same model whose context has `length` tokens; the same folder for 0."""
    if not length:
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        for file in folder.resolve().iterdir():
            (Path(name) / file.name).symlink_to(file)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config["shape"]["context_tokens"] = length
        (Path(name) / "config.json").unlink()
        (Path(name) / "config.json").write_text(json.dumps(config), "utf-8")
        yield Path(name)


def _holes(files: list[corpus.File], language: str, kind: str, count: int) -> list[TrainingHole]:
    if kind != "whole line":
        return [task.hole for task in held_out(files, language, kind, count)]
    return [_whole_line(task.hole) for task in held_out(files, language, "rest of line", count, seed=5)]


def _whole_line(hole: TrainingHole) -> TrainingHole:
    """Return the hole from the first character of its line that is not indentation."""
    start = hole.prefix.rpartition("\n")[2].lstrip()
    prefix = hole.prefix[: len(hole.prefix) - len(start)]
    return attrs.evolve(hole, prefix=prefix, middle=start + hole.middle, kind="whole line")


def _measured(workspaces: Workspaces, holes: list[TrainingHole]) -> Nats:
    model, memories = workspaces.model, workspaces.memories
    sums = []
    for hole in holes:
        fill = Task(hole, 0, "lines", workspace=workspaces.name_of(hole.path)).fill(TWIN)
        related = _nats(model, hole, attrs.evolve(fill, snippets=memories.related(fill)))[0]
        both, canvas, first = _nats(model, hole, fill)
        above = _nats(model, hole, attrs.evolve(fill, suffix=""))[0]
        sums.append(np.array((related, both, above, canvas, first, len(hole.middle) + 1, 1)))
    related, both, above, canvas, first, characters, count = np.sum(sums, axis=0)
    return Nats(related / characters, both / characters, above / characters, canvas / count, first / count)


def _nats(model: StreamModel, hole: TrainingHole, fill: Fill) -> tuple[float, float, float]:
    """Return nats of the middle with its end; nats a token of a canvas, and whether its first guess is right (0, 1)."""
    layout = model.lay_out(fill)
    middle = model.tokenizer.encode(layout.typed + hole.middle, add_special_tokens=False).ids
    targets = [*middle, model.end]
    compatible = model.compatible_tokens(layout.typed.encode()) if layout.typed else []
    if targets[0] not in compatible:
        compatible = []
    context = model.new_context()
    model.run([model.read(context, layout.context)])
    known = [layout.anchor, *middle]
    named = np.array(targets)[:, None]
    run = StreamPass(context, known, [], range(len(known)), Query(compatible_tokens=compatible, named=named))
    nats = -np.log(np.maximum(model.run([run])[0].predictions.named[:, 0], 1e-30)).sum()
    if not model.info.canvas_tokens:
        return float(nats), math.nan, math.nan
    context.truncate(len(layout.context))
    guessed = targets[1 : 1 + _CANVAS]
    named = np.array([targets[0], *guessed, *[model.end] * (_CANVAS - len(guessed))])[:, None]
    query = Query(compatible_tokens=compatible, named=named)
    canvas = StreamPass(context, [layout.anchor], [model.mask] * _CANVAS, range(_CANVAS + 1), query)
    predicted = model.run([canvas])[0].predictions
    of_canvas = -np.log(np.maximum(predicted.named[1 : 1 + len(guessed), 0], 1e-30)).mean()
    return float(nats), float(of_canvas), float(predicted.tokens[1, 0] == guessed[0])


if __name__ == "__main__":
    typer.run(main)
