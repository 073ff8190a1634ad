"""`midspan demo`: fill the holes of the sample files, then show how to set up an editor."""

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from engine.cli.canvas_view import filled_view
from engine.cli.console import FAILED, err, leave, out
from engine.cli.lsp_client import LspSession
from engine.cli.lsp_messages import FillAnswer, FillOptions
from engine.cli.options import OptionalModel, OptionalPrecision
from engine.cli.sample import Sample, SampleHole, samples
from engine.errors import MidspanError

# Long enough that the budget of a keystroke does not cut the fills short.
_OPTIONS = FillOptions(budget_ms=5000)

_NEOVIM = """\
vim.lsp.config("midspan", { cmd = { "COMMAND" }, root_markers = { ".git" } })
vim.lsp.enable("midspan")
vim.lsp.inline_completion.enable()
vim.keymap.set("i", "<Tab>", function()
  if not vim.lsp.inline_completion.get() then return "<Tab>" end
end, { expr = true })"""


def demo(model: OptionalModel = None, precision: OptionalPrecision = None) -> None:
    """Fill the holes of three sample files as an editor would, and show how to set up an editor."""
    try:
        asyncio.run(_demo(LspSession(model, precision)))
    except MidspanError as error:
        leave(error, FAILED)
    _show_editors()


async def _demo(session: LspSession) -> None:
    with tempfile.TemporaryDirectory(prefix="midspan-demo-") as folder:
        async with session:
            for sample in samples():
                await _show_sample(session, sample, Path(folder))


async def _show_sample(session: LspSession, sample: Sample, folder: Path) -> None:
    out.print(Rule(Text(sample.name, "bold"), align="left"))
    for hole in sample.holes(folder):
        answer = await _fill(session, hole)
        out.print(filled_view(hole.cursor, answer), soft_wrap=True)
        out.print(Text.assemble(("its author wrote: ", "dim"), hole.original), "", sep="\n", soft_wrap=True)


async def _fill(session: LspSession, hole: SampleHole) -> FillAnswer:
    path, text = hole.cursor.path, hole.cursor.text
    path.write_text(text, "utf-8")
    await session.open(path, text)
    try:
        with err.status("filling the hole (an engine that is not running yet takes a few seconds to start)"):
            return await session.fill(hole.cursor, _OPTIONS)
    finally:
        await session.close(path)


def _show_editors() -> None:
    out.print(Rule(Text("In your editor", "bold"), align="left"))
    out.print("Neovim 0.12, in init.lua:")
    command = str(Path(sys.executable).with_name("midspan-lsp"))
    out.print(Syntax(_NEOVIM.replace("COMMAND", command), "lua", background_color="default", word_wrap=True))
    out.print("Any other editor whose LSP client supports inline completion (LSP 3.18) runs the same command:")
    out.print(f"  {command} --stdio", soft_wrap=True)
    out.print("To fill a hole of your own: midspan fill FILE --at LINE:COL --watch")
    out.print("If something does not work: midspan doctor")
