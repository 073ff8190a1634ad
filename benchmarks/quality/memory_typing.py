"""What the memory of the workspace is worth while typing: hidden packages typed back, with and without it.

Run it as `python benchmarks/quality/memory_typing.py --corpus runs/small/corpus`. The workspace of a task is its
package without its own file. Word completion, which every editor has, types the same lines, and so does the memory
alone. "quiet" is the share that showed nothing, of the moments at which that was right; only the model has these.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
from itertools import product
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.quality.figures import typing_cells, typing_columns
from benchmarks.quality.typing_tasks import places
from benchmarks.quality.typing_ways import MEMORIES, RUNS, WORDS, type_all
from engine.corpus import corpus
from engine.errors import MidspanError
from engine.evaluation.measure import Workspaces
from engine.models.load import load
from engine.protocol.confidence import GLANCE, Price
from lsp_server.settings import DEFAULT_GATE, GATES, price_of
from lsp_server.suggest.restraint import DOUBT

LANGUAGES = ("python", "typescript", "go", "javascript", "rust", "java")


def main(
    corpus_folder: Annotated[Path, typer.Option("--corpus", help="The folder with held-out.msgpack.")] = Path(
        "runs/small/corpus"
    ),
    model_name: Annotated[str, typer.Option("--model", help='"embedded" or a folder with a model.')] = "embedded",
    count: Annotated[int, typer.Option(help="Tasks of three lines for each language.")] = 30,
    language: Annotated[list[str] | None, typer.Option(help="Languages to type.")] = None,
    gate: Annotated[list[str] | None, typer.Option(help="Gates to try: words or least probabilities.")] = None,
    wrong: Annotated[
        list[float] | None, typer.Option(help="Prices to try: keys that a wrong suggestion costs.")
    ] = None,
    glance: Annotated[float, typer.Option(help="Keys that a glance costs at these prices.")] = GLANCE,
    doubt: Annotated[
        list[float] | None, typer.Option(help="How much dearer a wrong start makes the next; 1 does nothing.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Contenders, by their names in the table.")] = None,
) -> None:
    """Type the same lines in every way and print how many keys each saves."""
    console = Console(highlight=False)
    try:
        model, files = load(model_name, threads=1), corpus.load(corpus_folder, "held-out")
        prices = {each: price_of(each if each in GATES else float(each)) for each in gate or []}
        prices |= {f"{each:g}, {glance:g}": Price(each, glance) for each in wrong or []}
        for name in language or LANGUAGES:
            table = Table("", "gate", "doubt", *typing_columns(), title=name)
            tasks = places(files, name, count)
            for contender in only or [WORDS, RUNS, *MEMORIES]:
                for (word, price), doubted in product((prices or {"normal": DEFAULT_GATE}).items(), doubt or [DOUBT]):
                    workspaces = Workspaces.of(model, model_name, files)
                    typed = asyncio.run(type_all(model, workspaces, tasks, contender, price, doubted))
                    table.add_row(contender, word, f"{doubted:g}", *typing_cells(typed.typing))
            console.print(table)
    except MidspanError as error:
        typer.echo(f"memory_typing: {error}", err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
