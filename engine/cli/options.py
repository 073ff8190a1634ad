"""Options that several commands have."""

from typing import Annotated

import typer

_MODEL_HELP = '"embedded" or a folder with a model.'
Model = Annotated[str, typer.Option(help=_MODEL_HELP)]
MaybeModel = Annotated[str | None, typer.Option(help=f"{_MODEL_HELP} Else as the settings say.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
