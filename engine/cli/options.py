"""Options that several commands have."""

from typing import Annotated

import typer

from engine.library.chosen_model import DEFAULT, chosen_model
from engine.library.precision_names import PrecisionSetting


def _warned(model: str | None) -> str | None:
    """Say on stderr when the chosen model is gone and the embedded one will be taken."""
    if model in (None, DEFAULT) and (problem := chosen_model().problem):
        typer.echo(f"midspan: {problem}", err=True)
    return model


_MODEL_HELP = "A name that `midspan models list` shows, or a folder with a model."
Model = Annotated[str, typer.Option(help=_MODEL_HELP, callback=_warned)]
MaybeModel = Annotated[str | None, typer.Option(help=f"{_MODEL_HELP} Else as the settings say.", callback=_warned)]
_PRECISION_HELP = "How the weights of a model other than the embedded one are held."
Precision = Annotated[
    PrecisionSetting, typer.Option(help=f"{_PRECISION_HELP} An engine started in one is found by naming it.")
]
MaybePrecision = Annotated[PrecisionSetting | None, typer.Option(help=f"{_PRECISION_HELP} Else as the settings say.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
