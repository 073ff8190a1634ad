"""The consoles for output and errors, and the exit with an error."""

from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from engine.errors import MidspanError
from engine.protocol.messages import plain


class PlainConsole(Console):
    """A console whose texts have no control characters: they may be a model's, a server's or a repository's."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Console does. rich's own control codes have segments of their own."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else plain(text), style, control)


out = PlainConsole(highlight=False, markup=False, emoji=False)
# Spinners and errors go to stderr, so that they do not get into a pipe.
err = PlainConsole(stderr=True, highlight=False, markup=False, emoji=False)

BAD_INPUT = 2
FAILED = 1


def leave(error: MidspanError, status: int) -> NoReturn:
    """Print the error's one line on stderr and exit with `status`."""
    typer.echo(plain(f"midspan: {error}"), err=True)
    raise typer.Exit(status)
