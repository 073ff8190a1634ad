"""Simulated editing without repetition: what people do in a file for a few minutes, key by key.

Everything is drawn from a seed and from real files. A session is a file, and actions in places of it that are drawn at
random: a block is written, a name, argument or number changes at one place, a typing error is corrected, comments and
strings change, an argument is added, lines are deleted, moved, or put below an `if`.
"""

import random
import re
from collections.abc import Callable, Iterator

import attrs

from benchmarks.refactor.next_edit_client import Change
from engine.corpus.languages import File

_COMMENT = {"python": "# ", "typescript": "// ", "go": "// "}
_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]{2,}\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_CALL = re.compile(r"\b[A-Za-z_][A-Za-z0-9_.]*\((?=[^()\n]+\))[^()\n]+(?=\))")
_STRING = re.compile(r"([\"'])([A-Za-z][^\"'\\\n]{3,40})\1")
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """and as assert async await break case catch class const continue def default defer del elif else except export
    extends finally for from func function global go if implements import in interface is lambda let map new None nil
    not null or package pass private public raise range readonly return select self static struct super switch this
    throw try type typeof undefined var void while with yield True False true false string number boolean int str
    bool""",
    )
)
_WORDS = ("the value", "which is", "used here", "when nothing", "else was", "given so", "that it", "can be", "later")
_NEAR = 400
_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'"}


@attrs.frozen
class Action:
    """What the user does next: `kind` names it, `changes` are its keys."""

    kind: str
    changes: list[Change]


class Writer:
    """A user who edits one file. `text` is the file as it is now."""

    def __init__(self, file: File, seed: str) -> None:
        self._random = random.Random(seed)
        self._file = file
        self.text = file.text
        self._closes_pairs = self._random.random() < 0.5
        self._pending = self._take_out_blocks()

    def actions(self, count: int) -> Iterator[Action]:
        """Yield actions. Apply the changes of each before the next is asked for."""
        kinds = self._random.choices(list(_KINDS), weights=[weight for weight, _ in _KINDS.values()], k=3 * count)
        done = 0
        for kind in kinds:
            changes = _KINDS[kind][1](self)
            if changes:
                for change in changes:
                    self.text = self.text[: change.start] + change.text + self.text[change.end :]
                yield Action(kind, changes)
                done += 1
            if done == count:
                return

    # What a user does. Each returns its keys, or none if the file has no place for it.

    def write_block(self) -> list[Change]:
        """Write lines of the file that were taken out of it."""
        if not self._pending:
            return []
        line, block = self._pending.pop()
        at = self._line_start(line)
        keys = [Change(at, at, "\n")]
        return keys + self._typed(at, block.rstrip("\n"))

    def change_name(self) -> list[Change]:
        """Give one use of a name another name of the file."""
        found = self._drawn(_NAME, lambda match: match[0] not in _KEYWORDS)
        name = self._name_near(found.start()) if found is not None else ""
        return self._retyped(found.start(), found.end(), name) if found is not None and name else []

    def change_number(self) -> list[Change]:
        """Change one number."""
        found = self._drawn(_NUMBER)
        if found is None:
            return []
        return self._retyped(found.start(), found.end(), str(self._random.randint(0, 500)))

    def change_string(self) -> list[Change]:
        """Change a word of a string."""
        found = self._drawn(_STRING)
        if found is None:
            return []
        return self._retyped(found.start(2), found.end(2), " ".join(self._random.sample(_WORDS, 2)))

    def add_argument(self) -> list[Change]:
        """Add an argument to one call."""
        found = self._drawn(_CALL)
        name = self._name_near(found.start()) if found is not None else ""
        return self._typed(found.end(), f", {name}") if found is not None and name else []

    def correct_typo(self) -> list[Change]:
        """Type a name wrong, at the end of a line of its own, and correct it."""
        found = self._drawn(_NAME, lambda match: match[0] not in _KEYWORDS and len(match[0]) > 4)
        if found is None:
            return []
        end = found.end()
        wrong = found[0][-2:][::-1] if found[0][-2] != found[0][-1] else "x" + found[0][-1]
        keys = [Change(end - 2, end, ""), *self._typed(end - 2, wrong)]
        return [*keys, Change(end - 1, end, ""), Change(end - 2, end - 1, ""), *self._typed(end - 2, found[0][-2:])]

    def write_comment(self) -> list[Change]:
        """Write a comment above a line."""
        line = self._drawn_line()
        if line is None:
            return []
        indent = self._indent(line)
        at = self._line_start(line)
        words = " ".join(self._random.sample(_WORDS, 6))
        keys = [Change(at, at, indent + "\n")]
        return keys + self._typed(at + len(indent), _COMMENT[self._file.language] + words)

    def delete_lines(self) -> list[Change]:
        """Delete one to three lines, one by one."""
        line = self._drawn_line()
        if line is None:
            return []
        keys, text = list[Change](), self.text
        for _ in range(self._random.randint(1, 3)):
            start = self._line_start(line)
            end = text.find("\n", start) + 1
            if end <= start:
                break
            keys.append(Change(start, end, ""))
            text = text[:start] + text[end:]
        return keys

    def move_block(self) -> list[Change]:
        """Cut some lines and paste them elsewhere."""
        first, target = self._drawn_line(), self._drawn_line()
        if first is None or target is None:
            return []
        start, end = self._line_start(first), self._line_start(first + self._random.randint(1, 5))
        block, text = self.text[start:end], self.text[:start] + self.text[end:]
        lines = text.count("\n")
        at = self._line_start(min(target, lines), text)
        return [Change(start, end, ""), Change(at, at, block)]

    def put_below_condition(self) -> list[Change]:
        """Write a condition above a line, and indent the line."""
        line = self._drawn_line()
        if line is None or self._file.language != "python":
            return []
        at, indent = self._line_start(line), self._indent(line)
        head = f"if {self._name_near(at)}:"
        keys = [Change(at, at, indent + "\n"), *self._typed(at + len(indent), head)]
        below = at + len(indent) + len(head) + 1
        return [*keys, Change(below, below, "    ")]

    # How keys are made.

    def _typed(self, at: int, text: str) -> list[Change]:
        """Return the keys of a text: an editor indents new lines, and may close brackets and quotes at once."""
        keys: list[Change] = []
        closing: list[str] = []
        index = 0
        while index < len(text):
            char = text[index]
            if closing and char == closing[-1]:
                closing.pop()  # the user types over it
                index, at = index + 1, at + 1
                continue
            if char == "\n":
                keys += [Change(at, at + 1, "")] * len(closing)
                closing.clear()
                indent = re.match(r"[ \t]*", text[index + 1 :])
                piece = char + (indent[0] if indent else "")
                if not text[index + len(piece) : index + len(piece) + 1].strip():
                    piece = char
                keys.append(Change(at, at, piece))
                index, at = index + len(piece), at + len(piece)
                continue
            closes = self._closes_pairs and char in _PAIRS and not (char in "\"'" and text[index - 1 : index].isalnum())
            if (
                closes
                and text.find(_PAIRS[char], index + 1) > 0
                and "\n" not in text[index : text.find(_PAIRS[char], index + 1)]
            ):
                keys.append(Change(at, at, char + _PAIRS[char]))
                closing.append(_PAIRS[char])
            else:
                keys.append(Change(at, at, char))
            index, at = index + 1, at + 1
        return keys

    def _retyped(self, start: int, end: int, new: str) -> list[Change]:
        """Return the keys that replace a word: it is selected, or deleted key by key."""
        if self._random.random() < 0.5:
            first = [Change(start, end, "")]
        else:
            first = [Change(position - 1, position, "") for position in range(end, start, -1)]
        return first + self._typed(start, new)

    def _take_out_blocks(self) -> list[tuple[int, str]]:
        """Take up to three blocks out of the file, to be written again: functions and the like."""
        lines = self.text.splitlines(keepends=True)
        starts = [
            index
            for index in range(1, len(lines) - 12)
            if not lines[index - 1].strip() and lines[index].strip() and lines[index][:1].isalpha()
        ]
        taken: list[tuple[int, str]] = []
        for start in sorted(self._random.sample(starts, min(3, len(starts))), reverse=True):
            end = next((n for n in range(start + 1, len(lines)) if not lines[n].strip()), len(lines))
            if 2 <= end - start <= 14 and not lines[start].startswith(("import", "from", "package")):
                taken.append((start, "".join(lines[start:end])))
                del lines[start:end]
        self.text = "".join(lines)
        return taken

    def _drawn(
        self, pattern: re.Pattern[str], allows: Callable[[re.Match[str]], bool] | None = None
    ) -> re.Match[str] | None:
        found = [
            match
            for match in pattern.finditer(self.text)
            if self._is_code(match.start()) and (not allows or allows(match))
        ]
        return self._random.choice(found) if found else None

    def _is_code(self, offset: int) -> bool:
        start = self.text.rfind("\n", 0, offset) + 1
        return not self.text[start:offset].lstrip().startswith(("#", "//", "*", "import", "from", "package"))

    def _name_near(self, offset: int) -> str:
        """Return a name from the lines around, as it is most likely one that can be used there; "" without one."""
        names = _NAME.findall(self.text[max(0, offset - _NEAR) : offset + _NEAR])
        found = sorted(set(names) - _KEYWORDS)
        return self._random.choice(found) if found else ""

    def _drawn_line(self) -> int | None:
        lines = self.text.split("\n")
        found = [index for index, line in enumerate(lines) if line.strip() and index]
        return self._random.choice(found) if found else None

    def _line_start(self, line: int, text: str | None = None) -> int:
        text = self.text if text is None else text
        start = 0
        for _ in range(line):
            stop = text.find("\n", start)
            if stop < 0:
                return len(text)
            start = stop + 1
        return start

    def _indent(self, line: int) -> str:
        start = self._line_start(line)
        found = re.match(r"[ \t]*", self.text[start:])
        return found[0] if found else ""


_KINDS: dict[str, tuple[int, Callable[[Writer], list[Change]]]] = {
    "write a block": (4, Writer.write_block),
    "change a name": (3, Writer.change_name),
    "change a number": (2, Writer.change_number),
    "change a string": (2, Writer.change_string),
    "add an argument": (2, Writer.add_argument),
    "correct a typing error": (2, Writer.correct_typo),
    "write a comment": (2, Writer.write_comment),
    "delete lines": (2, Writer.delete_lines),
    "move a block": (1, Writer.move_block),
    "put below a condition": (1, Writer.put_below_condition),
}
