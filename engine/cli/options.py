"""Options that several commands share."""

from typing import Annotated

import typer

from engine.library.chosen_model import DEFAULT, chosen_model
from engine.library.precision_names import PrecisionSetting


def _warn_if_gone(model: str | None) -> str | None:
    """Print a line to stderr if the chosen model is gone, so that the embedded one is used."""
    if any("\ud800" <= character <= "\udfff" for character in model or ""):
        raise typer.BadParameter("it is not UTF-8")
    if model in (None, DEFAULT) and (problem := chosen_model().problem):
        typer.echo(f"midspan: {problem}", err=True)
    return model


_MODEL_HELP = "A name from `midspan models list`, or a model's folder."
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
