"""`midspan demo`: type parts of the sample files with suggestions, and show how to set up an editor."""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import attrs
from rich.rule import Rule
from rich.text import Text

from engine.cli.console import FAILED, err, leave, out
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.cli.options import OptionalModel, OptionalPrecision
from engine.cli.typist import Sample, Stroke, Typist, samples
from engine.errors import MidspanError
from engine.evaluation.keystrokes import keys
from engine.protocol.lsp_messages import FillOptions

_TAKEN, _WRONG, _NUMBER = "bold green", "red", "dim cyan"
_TAB = "⇥"


def demo(model: OptionalModel = None, precision: OptionalPrecision = None) -> None:
    """Type parts of four sample files with suggestions as an editor shows them, and show how to set up an editor."""
    try:
        asyncio.run(_demo(model, precision))
    except MidspanError as error:
        leave(error, FAILED)
    _show_editors()


async def _demo(model: str | None, precision: str | None) -> None:
    out.print(
        Text.assemble(
            "Somebody types a part of each file, with the default settings. What a suggestion brought is ",
            (f"green{_TAB}after a Tab", _TAKEN),
            ", a ",
            ("[wrong one]", _WRONG),
            " was typed past.",
        ),
        soft_wrap=True,
    )
    with tempfile.TemporaryDirectory(prefix="midspan-demo-") as folder:
        project = Path(folder)
        everything = samples()
        for sample in everything:
            sample.write(project, sample.typed)
        async with LspSession(model, precision, project) as session:
            for sample in everything:
                await _type(session, sample, project)


async def _type(session: LspSession, sample: Sample, project: Path) -> None:
    out.print()
    out.print(Rule(Text(sample.name, "bold"), align="left"))
    path = sample.write(project, "")
    text = sample.above + sample.below
    await session.open(path, text)
    with err.status("starting the engine, which reads the files beside this one"):
        # An explained fill waits until both is done.
        await session.fill(Cursor.at_offset(path, text, len(sample.above)), FillOptions(explain=True))
    view = _View(number=sample.above.count("\n") + 1, line=sample.above.rpartition("\n")[2])
    async for stroke in Typist(session, sample, path).strokes():
        view.show(stroke)
    view.end_line()
    out.print(view.summary(sample.typed), soft_wrap=True)
    await session.close(path)
    sample.write(project, sample.typed)


@attrs.define
class _View:
    """The lines that are typed, each printed when it is complete. `line` is what stands on it before."""

    number: int
    line: str
    strokes: list[Stroke] = attrs.field(factory=list)
    _text: Text = attrs.field(factory=Text)

    def __attrs_post_init__(self) -> None:
        self._text.append(self.line)

    def show(self, stroke: Stroke) -> None:
        self.strokes.append(stroke)
        if stroke.kind == "wrong":
            self._text.append(f"[{stroke.text}]", _WRONG)
            return
        style = _TAKEN if stroke.kind == "taken" else ""
        first, *others = stroke.text.split("\n")
        self._text.append(_TAB + first if stroke.kind == "taken" else first, style)
        for line in others:
            self.end_line()
            self._text.append(line, style)

    def end_line(self) -> None:
        self._text.expand_tabs(4)
        out.print(Text.assemble((f"{self.number:>3} │ ", _NUMBER), self._text), soft_wrap=True)
        self.number += 1
        self._text = Text()

    def summary(self, typed: str) -> Text:
        """Return one line: the keys, what became of the suggestions, and how long they took."""
        kinds = [stroke.kind for stroke in self.strokes]
        right, wrong = kinds.count("taken"), kinds.count("wrong")
        all_keys, pressed = keys(typed), len(kinds) - wrong
        ms = statistics.median(stroke.ms for stroke in self.strokes)
        return Text(
            f"{pressed} keys instead of {all_keys}, {1 - pressed / all_keys:.0%} fewer · {right} suggestions right, "
            f"{wrong} wrong · {ms:.0f} ms from key to suggestion (median)",
            "cyan",
        )


def _show_editors() -> None:
    out.print()
    out.print(Rule(Text("In your editor", "bold"), align="left"))
    command = Path(sys.executable).with_name("midspan-lsp")
    program = command.with_name("midspan")
    out.print(
        f"{program} setup says what it would do for the editors on this machine; with a name it does it, as in",
        soft_wrap=True,
    )
    out.print(f"  {program} setup neovim", soft_wrap=True)
    out.print("Any other editor whose LSP client supports inline completion (LSP 3.18) runs this command:")
    out.print(f"  {command} --stdio", soft_wrap=True)
    out.print("To fill a hole of your own: midspan fill FILE --at LINE:COL --watch")
    out.print("If something does not work: midspan doctor")
