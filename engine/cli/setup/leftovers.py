"""What Midspan leaves on a machine besides the work of setup: engines that run, and its folders."""

import asyncio
import shutil
from pathlib import Path

import attrs

from engine.client.address import runtime_folders
from engine.client.stopping import stop_all
from engine.errors import MidspanError
from engine.folders import OWN_NAME, config_folder, data_folder, models_folder

_CLIENT = "midspan-cli"


@attrs.frozen
class Leftover:
    """A folder, and what Midspan keeps there."""

    what: str
    path: Path

    @property
    def is_ours(self) -> bool:
        """Whether all in the folder is Midspan's: it has our name. One that a variable names may be shared."""
        return OWN_NAME in (self.path.name, self.path.parent.name) and not self.path.is_symlink()


def leftovers() -> list[Leftover]:
    """Return the folders that are there. A folder in another one comes before that."""
    runtime, logs = runtime_folders()
    found = [
        Leftover("models", models_folder()),
        Leftover("statistics", data_folder()),
        Leftover("configuration", config_folder()),
        Leftover("logs", logs),
        Leftover("sockets of engines", runtime),
    ]
    return [each for each in found if each.path.is_dir()]


def remove_leftovers() -> list[str]:
    """End all engines of the user and remove the folders. Returns a line for each thing that was done or is left."""
    lines = [f"ended the engine of {model}" for model in asyncio.run(stop_all(_CLIENT))]
    for each in leftovers():
        if not each.path.is_dir():
            continue  # It was in a folder that is gone.
        if not each.is_ours:
            lines.append(f"left {each.path} ({each.what}): it does not have Midspan's name, so delete it yourself")
            continue
        try:
            shutil.rmtree(each.path)
        except OSError as error:
            raise MidspanError(f"{each.path} ({each.what}) cannot be removed: {error.strerror}") from None
        if each.path.parent.name == OWN_NAME and not any(each.path.parent.iterdir()):
            each.path.parent.rmdir()
        lines.append(f"removed {each.path} ({each.what})")
    return lines
