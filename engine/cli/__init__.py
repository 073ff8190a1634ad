"""The command line, `midspan`. It imports slow modules only in the commands that need them, so that --help is fast."""

import subprocess
import sys
from contextlib import suppress
from typing import Annotated

import typer

from engine import __version__
from engine.cli import demo, doctor, fill, play, serve, stats
from engine.cli import engine as engine_commands
from engine.cli import models as models_commands
from engine.cli.console import Commands
from engine.cli.setup.command import setup
from engine.library.extras import TRAIN, needs_extra

app = typer.Typer(
    name="midspan",
    cls=Commands,
    help="Fill code in the middle with a diffusion language model, on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command("fill")(fill.fill)
app.command("demo")(demo.demo)
app.command("setup")(setup)
app.command("doctor")(doctor.doctor)
app.command("stats")(stats.stats)
app.command("serve")(serve.serve)
app.command("play")(play.play)
app.add_typer(engine_commands.app, name="engine")
app.add_typer(models_commands.app, name="models")


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"midspan {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command(
    "train", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def train(context: typer.Context) -> None:
    """Train, evaluate and export the embedded model: `midspan train --help`."""
    # Training imports torch, which takes seconds. The other commands should not wait for it.
    with needs_extra("training", TRAIN):
        from engine.training.cli import app as training
    training(args=context.args, prog_name="midspan train")


@app.command(
    "refactor", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def refactor(context: typer.Context) -> None:
    """Edits in all files: repeat one of yours, fill stubs, add annotations or docstrings: `midspan refactor --help`."""
    # A command of the language server's package, which the engine does not import.
    # -P: Python must not import modules from the user's folder, such as a types.py or json.py.
    process = subprocess.Popen([sys.executable, "-P", "-m", "lsp_server.refactor_cli", *context.args])
    while True:
        with suppress(KeyboardInterrupt):  # the command gets the same signal, and ends
            raise typer.Exit(process.wait())


def main() -> None:
    """Run the command line. This is the entry point of the `midspan` script."""
    app()
