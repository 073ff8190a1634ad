"""Lines of a fill: where one ends inside a token, how sure the first is, where a text repeats the code below."""

from typing import AnyStr

import attrs

_MOST_CHARACTERS = 4_000
"""Characters of the code below in which its first lines are looked for."""
MOST_COMPARED = 2
"""Lines below that a text must repeat before it counts as repeated: one alone, as a decorator, may come twice."""


def line_end(text: AnyStr) -> int:
    """Return where the first line of a text ends, before its newline and a carriage return there; else its length.

    The one place that knows where a line ends inside a token, which may hold code, newlines and indentation.
    """
    newline, carriage = (b"\n", b"\r") if isinstance(text, bytes) else ("\n", "\r")
    line, found, _ = text.partition(newline)
    return len(line) - (1 if found and line.endswith(carriage) else 0)


class GrowingLine:
    """The confidence in the first line of a fill that is still being written, token by token."""

    def __init__(self) -> None:
        self.confidence = 1.0
        self._begun = False
        self._ended = False

    def add(self, text: str, probability: float) -> float:
        """Count one more token, which is `text`, and return the confidence so far.

        White space before the line does not count, nor what comes after it. A token with the end of the line and its
        newline counts.
        """
        if self._ended:
            return self.confidence
        if not self._begun:
            text = text.lstrip()
        self._begun = self._begun or bool(text)
        end = line_end(text)
        self._ended = end < len(text)
        if text[:end].strip() or (text and not self._ended):
            self.confidence *= probability
        return self.confidence


@attrs.frozen
class Repeat:
    """A text repeats what is below from its character `at` on: so many whole `lines`, and the start of another one."""

    at: int
    lines: int
    is_sure: bool


@attrs.frozen
class Below:
    """The code after a hole: the rest of its line, and the first lines below that are not blank.

    A model that writes on where the code above ends does not always end its text. It writes the middle, and then once
    more what it has read of the code below, or text about the code.

    margin: the white space before the cursor, if nothing else is before it in its line. fences: whether a line may
    begin with ```, as in Markdown; elsewhere an instructed model ends its code so.
    """

    rest: str
    lines: tuple[str, ...]
    margin: str | None = None
    fences: bool = False

    @classmethod
    def of(cls, prefix: str, suffix: str, language: str = "") -> "Below":
        """Return it for the text around the hole, with "\\n" line ends."""
        rest, _, below = suffix.partition("\n")
        lines = (line.rstrip() for line in below[:_MOST_CHARACTERS].split("\n"))
        before = prefix[prefix.rfind("\n") + 1 :]
        margin = before if before[-_MOST_CHARACTERS:].isspace() or not before else None
        return cls(rest.strip(), tuple(line for line in lines if line)[:MOST_COMPARED], margin, language == "markdown")

    def repeat(self, text: str) -> Repeat | None:
        """Return where a text that goes on repeats what is below, or leaves what the hole is in; None if nowhere.

        Lines are compared with their indentation, but the first one, which the cursor's line may have begun.
        """
        end = line_end(text)
        first = text[:end].rstrip()
        if self.rest and end < len(text) and first.endswith(self.rest):
            return Repeat(len(first) - len(self.rest), 1, is_sure=True)
        start, written, least = 0, text.split("\n"), self._least_indent(text)
        for number, line in enumerate(written):
            if line.strip():
                at = len(text[:start].rstrip())
                if number and (_indent(line) < least or (line.startswith("```") and not self.fences)):
                    return Repeat(at, 1, is_sure=True)
                matched = self._matched(written[number:], begun=number == 0) if self.lines else None
                if matched is not None:
                    return Repeat(at, matched, matched == len(self.lines))
            start += len(line) + 1
        return None

    def _least_indent(self, text: str) -> int:
        """Return the least indentation of a line of the text: that of its first line, and of the one below.

        A text at the end of a file may leave all blocks but the outermost.
        """
        if self.margin is None:
            return 0
        first = _indent(self.margin + text.partition("\n")[0]) if text.partition("\n")[0].strip() else 0
        return min(first, _indent(self.lines[0]) if self.lines else 1)

    def _matched(self, written: list[str], begun: bool) -> int | None:
        """Return how many whole lines are repeated by `written`, of which the last is unfinished; None if some is not.

        begun: whether the first line lacks the text before the cursor.
        """
        *whole, unfinished = written
        matched = 0
        for line in whole:
            if matched == len(self.lines):
                return matched
            if not line.strip():
                continue
            expected = self.lines[matched]
            if (line.strip() != expected.lstrip()) if begun and not matched else (line.rstrip() != expected):
                return None
            matched += 1
        if matched == len(self.lines) or self.lines[matched].startswith(unfinished.rstrip()):
            return matched
        return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
