"""What all commands share: the consoles for output and errors, the exit with an error, and some options."""

from collections.abc import Iterable
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from typer.core import TyperGroup

from engine.errors import MidspanError
from engine.library.precision_names import PrecisionSetting
from engine.library.store import DEFAULT, chosen_model
from engine.protocol.messages import plain

_WIDEST = 500
"""Characters of a table."""


class PlainConsole(Console):
    """A console whose texts have no control characters: they may be a model's, a server's or a repository's."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Console does. rich's own control codes have segments of their own."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else plain(text), style, control)

    def print_whole(self, table: Table) -> None:
        """Print a table as wide as it is. What a narrow terminal breaks can be read; what is cut cannot."""
        segments = self.render(table, self.options.update(width=_WIDEST))
        self.print(Segments(segments), soft_wrap=True, end="")


def labelled(rows: Iterable[tuple[str, str]]) -> Table:
    """Return labels and values as a table, without the empty values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for label, value in rows:
        if value:
            table.add_row(label, value)
    return table


out = PlainConsole(highlight=False, markup=False, emoji=False)
# Spinners and errors go to stderr, so that they do not get into a pipe.
err = PlainConsole(stderr=True, highlight=False, markup=False, emoji=False)

BAD_INPUT = 2
FAILED = 1


def leave(error: MidspanError, status: int = BAD_INPUT) -> NoReturn:
    """Print the error's one line on stderr and exit with `status`."""
    typer.echo(plain(f"midspan: {error}"), err=True)
    raise typer.Exit(status)


class Commands(TyperGroup):
    """All commands. One that raises MidspanError ends with its line, and with the status FAILED."""

    def invoke(self, ctx: Any) -> Any:  # a Context of click, or of the copy of it that newer typers have
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except MidspanError as error:
            leave(error, FAILED)


def _warn_if_gone(model: str | None) -> str | None:
    """Print a line to stderr if the chosen model is gone, so that the embedded one is used."""
    if any("\ud800" <= character <= "\udfff" for character in model or ""):
        raise typer.BadParameter("it is not UTF-8")
    if model in (None, DEFAULT) and (problem := chosen_model().problem):
        typer.echo(f"midspan: {problem}", err=True)
    return model


_MODEL_HELP = "A name from `midspan models list`, a GGUF file, or a model's folder."
Model = Annotated[str, typer.Option(help=_MODEL_HELP, callback=_warn_if_gone)]
OptionalModel = Annotated[
    str | None, typer.Option(help=f"{_MODEL_HELP} Default: the language server's setting.", callback=_warn_if_gone)
]
OptionalModelToStop = Annotated[str | None, typer.Option("--model", help=f"{_MODEL_HELP} Default: all that run.")]
_PRECISION_HELP = "The precision of the weights, for all models but the embedded one."
Precision = Annotated[
    PrecisionSetting,
    typer.Option(help=f"{_PRECISION_HELP} To find an engine that was started with one, name it again."),
]
OptionalPrecision = Annotated[
    PrecisionSetting | None, typer.Option(help=f"{_PRECISION_HELP} Default: the language server's setting.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
