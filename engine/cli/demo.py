"""`midspan demo`: type parts of the sample files with suggestions, and show how to set up an editor."""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import attrs
from rich.rule import Rule
from rich.text import Text

from engine.cli.console import OptionalModel, OptionalPrecision, err, out
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.evaluation.keystrokes import is_start, keys, next_key
from engine.protocol.editor_messages import FillOptions

Kind = Literal["typed", "taken", "wrong"]
# Marks around the part that is typed. A sample's name ends in .txt because the marks make it invalid source.
_START, _END = "⟨", "⟩"


@attrs.frozen
class Sample:
    """A sample file: its name, and its text before, in and after the part that is typed."""

    name: str
    above: str
    typed: str
    below: str

    @classmethod
    def read(cls, name: str, marked: str) -> "Sample":
        """Return the sample of a text with marks."""
        above, _, rest = marked.partition(_START)
        typed, _, below = rest.partition(_END)
        return cls(name, above, typed, below)

    def write(self, folder: Path, typed: str) -> Path:
        """Write the file with `typed` in place of its part, and return its path."""
        path = folder / self.name
        path.write_text(self.above + typed + self.below, "utf-8")
        return path


def samples() -> list[Sample]:
    """Return the samples in the package, sorted by name."""
    found = [file for file in files("engine.cli").joinpath("samples").iterdir() if file.name.endswith(".txt")]
    named = sorted((file.name.removesuffix(".txt"), file.read_text("utf-8")) for file in found)
    return [Sample.read(name, marked) for name, marked in named]


@attrs.frozen
class Stroke:
    """What one key did: it typed `text`, took it as a suggestion, or typed past the suggestion `text`.

    ms: from the request to its answer.
    """

    kind: Kind
    text: str
    ms: float


class Typist:
    """Types the part of a sample that is to be typed. The file must be open without it."""

    def __init__(self, session: LspSession, sample: Sample, path: Path) -> None:
        self._session, self._sample, self._path = session, sample, path

    async def strokes(self) -> AsyncIterator[Stroke]:
        """Yield what each key does. A suggestion that is typed past comes once, before the key that does so.

        Return with the indentation of the next line, which an editor writes, is one key.
        """
        text, typed, wrong = self._sample.typed, "", ""
        while typed != text:
            cursor = self._cursor(typed)
            started = time.perf_counter()
            items = await self._session.suggest(cursor)
            ms = (time.perf_counter() - started) * 1000
            shown, rest = items[0].insert_text if items else "", text[len(typed) :]
            taken = _wanted(shown, rest)
            if taken:
                yield Stroke("taken", taken, ms)
            elif shown and shown != wrong:
                yield Stroke("wrong", shown.partition("\n")[0], ms)
            key = taken or next_key(rest)
            if not taken:
                yield Stroke("typed", key, ms)
            wrong = shown.removeprefix(key) if shown.startswith(key) else ""
            await self._session.type_text(cursor, key)
            typed += key

    def _cursor(self, typed: str) -> Cursor:
        before = self._sample.above + typed
        return Cursor.at_offset(self._path, before + self._sample.below, len(before))


def _wanted(shown: str, rest: str) -> str:
    """Return what a typist takes of a suggestion who wants to write `rest`: all of it, its first line, or ""."""
    if shown and rest.startswith(shown) and "\n" in shown:
        return shown
    first, line = shown.partition("\n")[0], rest.partition("\n")[0]
    return first if is_start(first, line) else ""


_TAKEN, _WRONG, _NUMBER = "bold green", "red", "dim cyan"
_TAB = "⇥"


def demo(model: OptionalModel = None, precision: OptionalPrecision = None) -> None:
    """Type parts of four sample files with suggestions as an editor shows them, and show how to set up an editor."""
    asyncio.run(_demo(model, precision))
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
    """The lines that are typed, each printed when it is complete. `line` is the start of its line."""

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
