"""Trains on a GPU machine without network and without all of our packages: `python -m engine.training.gpu`.

Its input is carried there in shards, and its results come back in pieces; docs/training.md lists the steps.
"""

from pathlib import Path
from typing import Annotated

import typer

from engine.errors import MidspanError
from engine.training import shards
from engine.training.checkpoint import NEWEST, PLATEAU, Contents, Precision, back_to_plateau, slim
from engine.training.config import load_config
from engine.training.export import export_checkpoint
from engine.training.train import train

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train on a GPU without a network.")
DEFAULT = Path(__file__).parent / "gpu.toml"
PIECE = 15.0
"""Megabytes in a piece of the results."""
REPORTS = ("metrics.jsonl", "loss.png")

ConfigOption = Annotated[Path, typer.Option("--config", help="The run's TOML file; gpu.toml by default.")]
WorkOption = Annotated[Path, typer.Option("--work", help="Where corpus, checkpoint and metrics are.")]
PrecisionOption = Annotated[Precision, typer.Option(help="Precision of the checkpoints in the results.")]
ContentsOption = Annotated[Contents, typer.Option(help="Only weights, or everything, with the optimizers' state.")]


@app.command("pack")
def pack(
    target: Path,
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/small"),
    megabytes: Annotated[float, typer.Option(help="Size of a load: as much as one command may carry.")] = 44,
    shard: Annotated[float, typer.Option(help="Most megabytes in a shard.")] = 15,
    loads: Annotated[int, typer.Option(help="Number of loads, each with different files: one for each command.")] = 1,
) -> None:
    """Pack corpus and tokenizer of WORK into TARGET/load-0, TARGET/load-1, ..."""
    shares = load_config(config).corpus.shares
    for line in shards.pack(work / "corpus", work / "tokenizer.json", target, shares, megabytes, shard, loads):
        typer.echo(line)


@app.command("run")
def run(
    load: Annotated[
        list[Path] | None, typer.Option(help="Folders of shards to add to the corpus before training.")
    ] = None,
    config: ConfigOption = DEFAULT,
    work: WorkOption = Path("runs/gpu"),
    minutes: Annotated[
        float, typer.Option(help="Plan the whole run, over all its sessions, for this many minutes.")
    ] = 24,
    session: Annotated[
        float | None, typer.Option(help="Stop this session after this many minutes, including compiling.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that prepare batches: the number of cores less two.")] = 14,
    compiled: Annotated[bool, typer.Option(help="Compile the network.")] = True,
    resume: Annotated[Path | None, typer.Option(help="Results to resume from if WORK has no checkpoint.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write weights, metrics and plot of the run into this folder.")
    ] = None,
) -> None:
    """Train, continuing from the checkpoint in WORK if there is one, and stop in time to write the results."""
    for folder in load or []:
        shards.unpack(folder, work)
    if resume is not None and not (work / NEWEST).exists():
        shards.join(resume, work)
    train(load_config(config), work, minutes, workers, compiled, session)
    if results is not None:
        bring(results, work)


@app.command("bring")
def bring(
    results: Path,
    work: WorkOption = Path("runs/gpu"),
    precision: PrecisionOption = "int8",
    contents: ContentsOption = "weights",
    which: Annotated[list[str] | None, typer.Option(help="Checkpoints; both by default.")] = None,
    megabytes: Annotated[float, typer.Option(help="Megabytes in a piece.")] = PIECE,
) -> None:
    """Cut the newest checkpoint, that of the plateau, metrics and plot into pieces that can be carried back."""
    folder = work / "brought"
    folder.mkdir(exist_ok=True)
    files = [work / name for name in REPORTS if (work / name).exists()]
    for name in which or (NEWEST, PLATEAU):
        if (work / name).exists():
            slim(work / name, folder / name, precision, contents)
            files.append(folder / name)
    for piece in shards.split(files, results, megabytes):
        typer.echo(f"{piece}: {piece.stat().st_size / shards.MEGABYTE:.1f} MB")


@app.command("join")
def join(results: Path, work: WorkOption = Path("runs/gpu")) -> None:
    """Put the pieces of the results together in WORK, where the run can continue."""
    work.mkdir(parents=True, exist_ok=True)
    for path in shards.join(results, work):
        typer.echo(str(path))


@app.command("plateau")
def plateau(work: WorkOption = Path("runs/gpu")) -> None:
    """Go back to the start of the cooldown: the next run with more minutes plans a new one."""
    back_to_plateau(work)


@app.command("export")
def export_model(target: Path, config: ConfigOption = DEFAULT, work: WorkOption = Path("runs/gpu")) -> None:
    """Write the newest checkpoint, in any precision, as a model's folder."""
    export_checkpoint(load_config(config), work, target)


if __name__ == "__main__":
    try:
        app()
    except MidspanError as error:
        raise SystemExit(f"midspan: {error}") from None
