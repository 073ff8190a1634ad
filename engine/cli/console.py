"""The two consoles of the command line, and how it ends when something is wrong."""

from typing import NoReturn

import typer
from rich.console import Console

from engine.errors import MidspanError

out = Console(highlight=False)
# What is for the person at the terminal only (spinners, errors) stays out of pipes.
err = Console(stderr=True, highlight=False)

BAD_INPUT = 2
FAILED = 1


def leave(error: MidspanError, status: int) -> NoReturn:
    """Print the error's one line on stderr and exit with `status`."""
    typer.echo(f"midspan: {error}", err=True)
    raise typer.Exit(status)
