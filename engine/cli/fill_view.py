"""A fill on a terminal: its canvas, its text in the file, its times, and where it came from."""

from rich.console import Group
from rich.text import Text

from engine.cli.cursor import Cursor
from engine.protocol.editor_messages import FillResult
from engine.protocol.origin_lines import origin_line, source_line

MASK, APART = "░", "▒"
_CONTEXT_LINES = 3
_TAB_SIZE = 4
_DIM, _FILL, _MASKED, _NUMBER = "dim", "bold green", "cyan", "dim cyan"


def canvas_text(canvas: list[str | None]) -> Text:
    """Return a canvas: its tokens up to the first mask bright, then a placeholder for each position.

    What is committed after a mask may not fit what comes before it (`utils/░░js`), so it is not shown as text yet.
    """
    first = canvas.index(None) if None in canvas else len(canvas)
    start = Text("".join(token for token in canvas[:first] if token is not None), _FILL)
    return Text.assemble(start, *((MASK if token is None else APART, _MASKED) for token in canvas[first:]))


def answer_text(answer: FillResult) -> Text:
    """Return the fill of an answer, or "(nothing)" if it is empty."""
    return Text(answer.text, _FILL) if answer.text else Text("(nothing)", "italic yellow")


def in_context(cursor: Cursor, start: int, end: int, middle: Text) -> Text:
    """Return the file with `middle` instead of `cursor.text[start:end]`, cut to a few numbered lines around it.

    `start` and `end` are character offsets.
    """
    before = _with_newlines(cursor.text[:start]).split("\n")
    after = _with_newlines(cursor.text[end:]).split("\n")
    first_line = max(0, len(before) - 1 - _CONTEXT_LINES)
    middle = middle.copy()
    excerpt = Text.assemble(
        ("\n".join(before[first_line:]), _DIM), middle, ("\n".join(after[: _CONTEXT_LINES + 1]), _DIM)
    )
    excerpt.expand_tabs(_TAB_SIZE)
    lines = excerpt.split("\n", allow_blank=True)
    width = len(str(first_line + len(lines)))
    numbered = [
        Text.assemble((f"{number:>{width}} │ ", _NUMBER), line) for number, line in enumerate(lines, first_line + 1)
    ]
    return Text("\n").join(numbered)


def summary(answer: FillResult) -> Text:
    """Return one line with the time, the steps and the confidence of a fill."""
    ms = answer.ms
    parts = [
        f"{len(answer.tokens)} tokens",
        f"{answer.steps} steps",
        f"{ms.total:.1f} ms (queue {ms.queue:.1f}, encode {ms.encode:.1f}, denoise {ms.denoise:.1f})",
        f"rule {answer.rule}" + (f", best of {answer.chosen_from}" if answer.chosen_from > 1 else ""),
        f"confidence {answer.confidence:.2f}",
        answer.finish,
        f"model {answer.model}",
    ]
    return Text(" · ".join(parts), "cyan")


def filled_view(cursor: Cursor, answer: FillResult) -> Group:
    """Return the filled hole in its context, and its summary below."""
    start = cursor.offset(answer.range.start.line, answer.range.start.character)
    end = cursor.offset(answer.range.end.line, answer.range.end.character)
    return Group(in_context(cursor, start, end, answer_text(answer)), summary(answer))


def origins_view(answer: FillResult) -> Text:
    """Return where the text came from: a line about all of it, one for each origin, and why an editor hides it."""
    lines = [Text(source_line(answer.text, answer.source, answer.origins), _FILL)]
    lines += [Text(f"  {origin_line(origin)}") for origin in answer.origins]
    if answer.silence:
        lines.append(Text(f"an editor shows none of it until it is asked: {answer.silence}", "yellow"))
    return Text("\n").join(lines)


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
