"""The command `midspan setup`."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.text import Text

from engine.cli.console import FAILED, leave, out
from engine.cli.ladder import measured_offer, offer_line
from engine.cli.setup.deeds import Deeds, Receipt
from engine.cli.setup.editors import NAMES, Editor, editors_here, undo, why_missing
from engine.client.address import runtime_folders
from engine.client.launcher import stop_all
from engine.errors import MidspanError
from engine.folders import OWN_NAME, config_folder, data_folder, models_folder
from engine.library.catalog import DEFAULT_BUDGET_MS

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
    if lines:
        lines.append("an editor that is open starts it again with the next key: close your editors, then repeat this")
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


def setup(
    editors: Annotated[list[str] | None, typer.Argument(help=f"Some of: {', '.join(NAMES)}.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it for all editors that are found.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Undo what setup did, and nothing else.")] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="With --remove: also end the engines; remove models, statistics, configuration, logs."
        ),
    ] = False,
) -> None:
    """Put Midspan into the editors of this machine. Without names and --yes it only says what it would do."""
    names = editors or []
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        leave(MidspanError(f"setup knows no {unknown[0]!r}; it knows {', '.join(NAMES)}"))
    if everything and (names or not remove):
        leave(MidspanError("--all is for `setup --remove --all`, which takes no names"))
    try:
        receipt = Receipt.read()
        if remove:
            _remove(receipt, names)
            _remove_rest(everything)
        elif names or yes:
            _install(receipt, names)
        else:
            _show(receipt)
    except OSError as error:
        raise MidspanError(str(error)) from None


def _show(receipt: Receipt) -> None:
    found = editors_here()
    for editor in found:
        if editor.problem:
            _line(editor.title, f"cannot: {editor.problem}", "yellow")
        else:
            again = "again: " if editor.name in receipt.editors else ""
            _line(editor.title, f"would {again}{editor.plan}")
    if not found:
        out.print(f"no editor was found; setup knows {', '.join(NAMES)}, on the PATH", soft_wrap=True)
        return
    _offer()
    ways = "do it: midspan setup --yes, or for some: midspan setup NAME ...; undo it: midspan setup --remove"
    out.print(ways, style="dim", soft_wrap=True)


def _install(receipt: Receipt, names: list[str]) -> None:
    """Install for `names`, or for all that are found. Goes on after a failure, and exits with FAILED at the end."""
    found = {editor.name: editor for editor in editors_here()}
    failed = False
    for name in names or found:
        editor = found.get(name)
        problem = why_missing(name) if editor is None else _installed(editor, receipt)
        if problem:
            failed = True
            _line(editor.title if editor else name, f"not done: {problem}", "yellow")
    if not found and not names:
        raise MidspanError(f"no editor was found; setup knows {', '.join(NAMES)}, on the PATH")
    if failed:
        raise typer.Exit(FAILED)
    _offer()


def _offer() -> None:
    """Say which better model this machine could carry, if it could."""
    if (offer := measured_offer(DEFAULT_BUDGET_MS)) is not None:
        _line("better model", offer_line(offer))


def _installed(editor: Editor, receipt: Receipt) -> str:
    """Install for one editor. Returns why it could not be done, or nothing."""
    if editor.problem:
        return editor.problem
    try:
        receipt.editors[editor.name] = editor.install(receipt.editors.get(editor.name, Deeds()))
    except (MidspanError, OSError) as error:
        return str(error)
    receipt.write()
    _line(editor.title, f"done: {editor.plan}", "green")
    if editor.then:
        _line("", f"→ {editor.then}")
    return ""


def _remove(receipt: Receipt, names: list[str]) -> None:
    """Undo for `names`, or for all that was done. Goes on after a failure, and exits with FAILED at the end."""
    chosen = names or list(receipt.editors)
    if not chosen:
        out.print("setup has done nothing here, so there is nothing to undo")
    failed = False
    for name in chosen:
        done = receipt.editors.get(name)
        if done is None:
            _line(name, "setup has done nothing for it")
            continue
        try:
            left = undo(done)
        except (MidspanError, OSError) as error:
            failed = True
            _line(name, f"not undone: {error}", "yellow")
            continue
        del receipt.editors[name]
        receipt.write()
        _line(name, "undone", "green")
        for line in left:
            _line("", f"→ {line}", "yellow")
    if failed:
        raise typer.Exit(FAILED)


def _remove_rest(everything: bool) -> None:
    """Remove all else of Midspan's, or say what is left."""
    if everything:
        for line in remove_leftovers():
            _line("", line, "yellow" if line.startswith("left ") else "")
        if sys.prefix != sys.base_prefix:
            _line("", f"→ now delete {sys.prefix}, where Midspan itself is")
    elif left := leftovers():
        _line("", f"still there: {', '.join(f'{each.path} ({each.what})' for each in left)}", "dim")
        _line("", "remove them too: midspan setup --remove --all", "dim")


def _line(title: str, text: str, style: str = "") -> None:
    out.print(Text.assemble((f"{title:<13}", "cyan"), (text, style)), soft_wrap=True)
