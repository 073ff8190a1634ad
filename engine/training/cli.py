"""`midspan train`: corpus, tokenizer, training, export and evaluation, one after the other or each alone."""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console

from engine.corpus import corpus as corpora
from engine.corpus.languages import MARKUP
from engine.evaluation import humaneval as humaneval_set
from engine.evaluation.calibration import judged_fills
from engine.evaluation.measure import measure_held_out
from engine.evaluation.rows import write_rows
from engine.evaluation.strategies import DENOISE, VERIFY
from engine.evaluation.summary import speeds, summarize
from engine.evaluation.tables import calibration_table, fill_tables, speed_table
from engine.memory.gate import GATE_FILE
from engine.models import load as registry
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.card import write_card
from engine.training.compare import compare, compared_table
from engine.training.config import Config, load_config
from engine.training.export import export_checkpoint
from engine.training.gpu import app as gpu_app
from engine.training.link_fit import fit_link
from engine.training.memory import train_blind_gate, train_gate
from engine.training.memory_odds import BLIND_GATE
from engine.training.tokenizer import train_tokenizer
from engine.training.train import train

app = typer.Typer(add_completion=False)
app.add_typer(gpu_app, name="gpu")
DEFAULT = Path(__file__).parent / "cpu.toml"
TOKENIZER_MEGABYTES = 40

ConfigOption = Annotated[
    Path, typer.Option("--config", help="The run's TOML file.", show_default="cpu.toml of the package")
]
WorkOption = Annotated[Path, typer.Option("--work", help="Where corpus, checkpoint and metrics go.")]


@app.callback(invoke_without_command=True)
def run_all(
    context: typer.Context,
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    minutes: Annotated[
        float, typer.Option(help="Plan the whole training for this many minutes; a run continues where it stopped.")
    ] = 60,
    workers: Annotated[int, typer.Option(help="Processes that prepare batches.")] = 1,
    compiled: Annotated[bool, typer.Option(help="Compile the network; needs a C++ compiler.")] = True,
    evaluation: Annotated[list[Path] | None, typer.Option(help="Evaluation sets to keep out of the corpus.")] = None,
    session: Annotated[
        float | None, typer.Option(help="Stop this session after this many minutes; the next one continues.")
    ] = None,
    beside: Annotated[
        Path | None, typer.Option(help="The work folder of a run at the same time, to average weights with.")
    ] = None,
    target: Annotated[Path | None, typer.Option(help="Where to write the model's folder.")] = None,
    count: Annotated[int, typer.Option(help="Held-out holes of each language and kind for the evaluation.")] = 20,
) -> None:
    """Train the embedded model, from nothing to weights: fetch, clean, tokenize, train, export, evaluate."""
    if context.invoked_subcommand is not None:
        return
    numbers = load_config(config)
    work.mkdir(parents=True, exist_ok=True)
    _prepare(numbers, config, work, evaluation or [])
    train(numbers, work, minutes, workers, compiled, session, beside)
    target = target or work / "model"
    export_checkpoint(numbers, work, target)
    evaluate_model(str(target), work, count=count, rows=work / "evaluation" / "held-out.jsonl")
    write_card(numbers, config.parent, work, target)
    typer.echo(f"model and card written to {target}")


def _prepare(config: Config, config_path: Path, work: Path, evaluation: list[Path]) -> None:
    """Make the corpus and the tokenizer if they are missing."""
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


@app.command("judge")
def judge_corpus(config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/small")) -> None:
    """Fetch and clean only the packages that judge a model, which no training needs; `make quality` reads them."""
    manifest = config.parent / load_config(config).corpus.manifest
    corpora.build(manifest, work / "downloads", work / "corpus", [], ["judge"])


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
    plot: Annotated[Path | None, typer.Option(help="Write the reliability plot here, as PNG.")] = None,
) -> None:
    """Fill held-out holes with every strategy; print quality, milliseconds and calibration.

    benchmarks/quality.py measures more: typing, and what the code after the cursor is worth.
    """
    files = corpora.load(work / "corpus", "held-out")
    languages = language or sorted({file.language for file in files} - MARKUP)
    model = registry.load(model_name)
    fills = measure_held_out(model, files, languages, kind or ["rest of line", "lines"], count)
    for path in humaneval or []:
        fills += asyncio.run(humaneval_set.solve(model, humaneval_set.draw(humaneval_set.load(path), count, count)))
    if rows is not None:
        write_rows(fills, rows)
    console = Console()
    for table in fill_tables(summarize(fills)):
        console.print(table)
    console.print(speed_table([speed for strategy in (DENOISE, VERIFY) for speed in speeds(fills, strategy)]))
    judged = judged_fills(fills)
    console.print(calibration_table(judged, "Confidence, all languages, rest of line"))
    if plot is not None:
        from engine.evaluation.reliability_plot import draw  # matplotlib belongs to the extra "train"

        draw(judged, f"{model.info.name}, rest of line", plot)


@app.command("quality")
def quality_of_checkpoints(
    checkpoints: Annotated[list[Path], typer.Argument(help="Checkpoints of one run, copied while it went on.")],
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    language: Annotated[str, typer.Option(help="The held-out language.")] = "python",
    kind: Annotated[str, typer.Option(help="How holes are cut.")] = "rest of line",
    count: Annotated[int, typer.Option(help="Holes to fill.")] = 250,
) -> None:
    """Evaluate checkpoints of a run, and draw WORK/quality.png: over the tokens read, and over denoising steps."""
    from engine.training.quality_plot import draw  # matplotlib belongs to the extra "train"

    numbers, files = load_config(config), corpora.load(work / "corpus", "held-out")
    measured = {}
    for checkpoint in checkpoints:
        with tempfile.TemporaryDirectory() as folder:
            tokens = export_checkpoint(numbers, work, Path(folder), checkpoint).stream_tokens
            measured[tokens] = measure_held_out(registry.load(folder), files, [language], [kind], count)
        typer.echo(f"{checkpoint}: {tokens / 1e6:.1f} million tokens")
        for table in fill_tables(summarize(measured[tokens])):
            Console().print(table)
    draw(measured, work / "quality.png")
    typer.echo(f"drawn: {work / 'quality.png'}")


@app.command("compare")
def compare_leads(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint that every lead continues from.")],
    changes: Annotated[
        list[str], typer.Option("--change", help='One number to change: "objective.distilled = 0"; "" for none.')
    ],
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    steps: Annotated[int, typer.Option(help="Steps for each lead.")] = 200,
    count: Annotated[int, typer.Option(help="Held-out Python holes to fill.")] = 250,
) -> None:
    """Continue from one checkpoint once for each change, for the same steps, and print what each is worth."""
    leads = []
    for number, change in enumerate(changes):
        folder = work / "compare" / str(number)
        leads.append(compare(load_config(config), checkpoint, work, change, steps, folder, count))
        typer.echo(f"{folder}: {attrs.asdict(leads[-1])}")
    Console().print(compared_table(leads))


@app.command("link")
def train_link(
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    minutes: Annotated[float, typer.Option(help="How long to train it.")] = 10,
    workers: Annotated[int, typer.Option(help="Processes that prepare batches.")] = 1,
) -> None:
    """Train only the link between neighbours of a canvas, into the newest checkpoint; other weights do not change."""
    for gain in fit_link(load_config(config), work, minutes, workers):
        typer.echo(
            f"tokens {gain.low} to {gain.high} after the anchor: {gain.alone:.3f} nats alone, {gain.linked:.3f} linked"
        )


@app.command("memory")
def train_memory(
    model_name: Annotated[str, typer.Option("--model", help='"embedded" or a folder.')] = "embedded",
    work: WorkOption = Path("runs/small"),
    target: Annotated[Path, typer.Option(help="Where to write the gate.")] = Path(GATE_FILE),
    minutes: Annotated[float, typer.Option(help="How long to read packages of the corpus.")] = 8,
    blind: Annotated[
        bool, typer.Option("--blind", help="For training with objective.memory_share: write the gate into WORK.")
    ] = False,
) -> None:
    """Train the gate that mixes the model's predictions with what is known of the workspace."""
    if blind:
        train_blind_gate(model_name, work / "corpus", work / BLIND_GATE, minutes)
        return
    report = train_gate(model_name, work / "corpus", target, minutes)
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


@app.command("tokens")
def characters_a_token(work: WorkOption = Path("runs/small")) -> None:
    """Print characters per token on the held-out files, by language."""
    tokenizer = load_tokenizer(work / "tokenizer.json")
    files = corpora.load(work / "corpus", "held-out")
    for language in sorted({file.language for file in files}):
        texts = [file.text for file in files if file.language == language]
        tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(texts))
        typer.echo(f"{language}: {sum(map(len, texts)) / tokens:.2f} characters a token")
