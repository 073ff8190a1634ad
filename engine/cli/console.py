"""The consoles for output and errors, and the exit with an error."""

from typing import NoReturn

import typer
from rich.console import Console

from engine.errors import MidspanError

out = Console(highlight=False)
# Spinners and errors go to stderr, so that they do not get into a pipe.
err = Console(stderr=True, highlight=False)

BAD_INPUT = 2
FAILED = 1


def leave(error: MidspanError, status: int) -> NoReturn:
    """Print the error's one line on stderr and exit with `status`."""
    typer.echo(f"midspan: {error}", err=True)
    raise typer.Exit(status)
