"""`midspan train`: corpus, tokenizer, training, export and evaluation, one after the other or each alone."""

import random
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from engine.models import registry
from engine.training import corpus as corpora
from engine.training import evaluate
from engine.training.card import write_card
from engine.training.config import Config, load_config
from engine.training.export import export_checkpoint
from engine.training.tokenizer import train_tokenizer
from engine.training.train import train

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train the embedded model.")
DEFAULT = Path(__file__).parent / "cpu.toml"
TOKENIZER_MEGABYTES = 40

ConfigOption = Annotated[Path, typer.Option("--config", help="The run's TOML file.")]
WorkOption = Annotated[Path, typer.Option("--work", help="Where corpus, checkpoint and metrics go.")]


def _prepare(config: Config, config_path: Path, work: Path, evaluation: list[Path]) -> None:
    if not (work / "corpus" / "train.msgpack").exists():
        manifest = config_path.parent / config.corpus.manifest
        corpora.build(manifest, work / "downloads", work / "corpus", evaluation)
    if not (work / "tokenizer.json").exists():
        files = corpora.load(work / "corpus", "train")
        random.Random(0).shuffle(files)
        texts: list[str] = []
        for language, share in config.corpus.shares.items():
            room = share * TOKENIZER_MEGABYTES * 1e6
            for file in files:
                if file.language == language and room > 0:
                    texts.append(file.text)
                    room -= len(file.text)
        train_tokenizer(texts, config.model.vocabulary).save(str(work / "tokenizer.json"))


@app.command("run")
def run_all(
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    minutes: Annotated[
        float, typer.Option(help="Plan the whole run for this long; a run goes on where it stopped.")
    ] = 60,
    workers: Annotated[int, typer.Option(help="Processes that prepare batches.")] = 1,
    compiled: Annotated[bool, typer.Option(help="Compile the network; needs a C++ compiler.")] = True,
    evaluation: Annotated[list[Path] | None, typer.Option(help="Evaluation sets to keep out of the corpus.")] = None,
    target: Annotated[Path | None, typer.Option(help="Where the model's folder is written.")] = None,
) -> None:
    """From nothing to weights: fetch, clean, tokenize, train, export."""
    numbers = load_config(config)
    work.mkdir(parents=True, exist_ok=True)
    _prepare(numbers, config, work, evaluation or [])
    train(numbers, work, minutes, workers, compiled)
    export_checkpoint(numbers, work, target or work / "model")
    typer.echo(f"model written to {target or work / 'model'}")


@app.command("export")
def export_model(target: Path, config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small")) -> None:
    """Write the newest checkpoint as a model's folder."""
    export_checkpoint(load_config(config), work, target)


@app.command("card")
def card(target: Path, config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small")) -> None:
    """Write the model card from the run and the evaluations in WORK/evaluation."""
    typer.echo(f"card written to {write_card(load_config(config), config.parent, work, target)}")


@app.command("eval")
def evaluate_model(
    model: Annotated[str, typer.Option(help='"embedded" or a folder.')] = "embedded",
    work: WorkOption = Path("runs/small"),
    language: str = "python",
    kind: Annotated[
        str, typer.Option(help="How holes are cut: rest of line, inside, lines, body, span.")
    ] = "rest of line",
    count: Annotated[int, typer.Option(help="Holes.")] = 300,
    rows: Annotated[Path | None, typer.Option(help="Write every hole's result here, as JSON lines.")] = None,
) -> None:
    """Fill holes of the held-out packages in every way and print exact match beside milliseconds."""
    summaries = evaluate.run(registry.load(model), work / "corpus", language, kind, count, rows)
    table = Table(
        "way", "exact", "similarity", "tokens", "passes", "ms", "median ms", title=f"{language}, {kind}, {count} holes"
    )
    for row in summaries:
        numbers = (f"{row.exact:.1%}", f"{row.similarity:.2f}", row.tokens, row.steps, row.ms, row.median_ms)
        table.add_row(row.way, *map(str, numbers))
    Console().print(table)


@app.command("tokens")
def characters_a_token(work: WorkOption = Path("runs/small")) -> None:
    """Print characters a token on the held-out files, by language."""
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    files = corpora.load(work / "corpus", "held-out")
    for language in sorted({file.language for file in files}):
        texts = [file.text for file in files if file.language == language]
        tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(texts))
        typer.echo(f"{language}: {sum(map(len, texts)) / tokens:.2f} characters a token")
