"""The default model of this user, as the commands change it."""

import asyncio
from pathlib import Path

from engine.cli.console import err, out
from engine.client.address import resolve_model
from engine.client.launcher import EngineOptions, stop_running
from engine.errors import MidspanError, ModelError
from engine.library.gguf_file import is_gguf, read_header
from engine.library.store import NO_MODEL, choose, choose_for_edits, chosen_for_edits, chosen_model
from engine.models.edit_formats import EDIT_FORMATS, format_named


def make_default(model: str) -> None:
    """Make a model the default, say so, and end the engine of the one before. Raises ModelError.

    `model` is a name, or the absolute path of a folder or GGUF.
    """
    before = chosen_model().model
    choose(model)
    out.print(f"in use from now on: {model}", soft_wrap=True)
    if model != before:
        stop_engine(before)


def check_predicts_edits(place: Path) -> None:
    """Raise ModelError for a model, a folder or a GGUF, whose name is that of no format."""
    name = read_header(place).text("general.name", "") if is_gguf(place) else ""
    if format_named(f"{name} {place.name}") is None:
        known = ", ".join(part for row in EDIT_FORMATS for part in row.names)
        raise ModelError(f"{name or place.name} predicts no edits; the name of one that does has one of {known}")


def make_default_for_edits(model: str) -> None:
    """Make a model the one for next edits, or none of them, and say so. Raises ModelError."""
    before = chosen_for_edits().model
    choose_for_edits(model)
    out.print(f"for next edits from now on: {model}", soft_wrap=True)
    if before not in (model, NO_MODEL, chosen_model().model):
        stop_engine(before)


def stop_engine(model: str) -> None:
    """Ask the engine of a model to end, so that editors start one with the new model or the new files."""
    try:
        if asyncio.run(stop_running(EngineOptions(model=resolve_model(model)), "midspan-cli")):
            out.print("the running engine has ended; editors use the new model for their next suggestion")
    except MidspanError as error:
        err.print(f"midspan: the running engine could not be stopped ({error}); restart it in your editor")
