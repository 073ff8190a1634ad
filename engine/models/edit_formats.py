"""How models that were made to predict edits are asked, and how their answers are read: a row a format.

`sweep` is that of sweepai/sweep-next-edit-0.5B and -1.5B, as cursortab.nvim and other programs ask them; -v2-7B has
another, with numbers of lines and a mark at the cursor. `zeta2` and `zeta2.1` are those of Zed, by its
crates/zeta_prompt (`seed_coder`, `V0318SeedMultiRegions`). No model of these three has been run here: their weights
were not at hand. `instruct` is a chat with a model that was made for none of it. What the editor's compilers report has
a place in `sweep` and `instruct`; Zed's prompts have one only in formats that came later.

A prompt is a list of pieces. A Mark is one token of the model, which it alone may be: the user's text is tokenized
without special tokens, so that no file can write one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import attrs
from tokenizers import Tokenizer

from engine.protocol.rewrite import PastEdit, Report


@attrs.frozen
class Mark:
    """A special token, by its name."""

    token: str


Piece = Mark | str


@attrs.frozen
class EditPrompt:
    """What a format writes down. `related` has paths with texts. cursor, kept, reports: see Rewrite."""

    path: str
    above: str
    region: str
    below: str
    cursor: int = -1
    kept: int = 0
    edits: Sequence[PastEdit] = ()
    related: Sequence[tuple[str, str]] = ()
    reports: Sequence[Report] = ()

    @property
    def head(self) -> str:
        """The lines of the region that stay as they are. An answer begins after them."""
        return self.region[: self.kept]

    @property
    def rest(self) -> str:
        """The region without these."""
        return self.region[self.kept :]

    def with_cursor(self, mark: str) -> str:
        """Return the region with a mark where the cursor is."""
        if self.cursor < 0:
            return self.region
        return self.region[: self.cursor] + mark + self.region[self.cursor :]


@attrs.frozen
class EditFormat:
    """A row. `names` are parts of the names of its models, and `marks` tokens that each of these has.

    `reserved` are texts that mean something in a prompt: a region with one is not asked about. `prompt` writes the
    pieces, `unchanged` the answer that changes nothing, which is the first draft. `stop` is the text that ends an
    answer, besides the model's own end. `read` returns the region's new text, None for an answer that is not whole.
    """

    name: str
    names: tuple[str, ...]
    marks: tuple[str, ...]
    reserved: tuple[str, ...]
    stop: str
    prompt: Callable[[EditPrompt], list[Piece]]
    unchanged: Callable[[EditPrompt], str]
    read: Callable[[EditPrompt, str], str | None]

    def is_ambiguous(self, asked: EditPrompt) -> bool:
        """Return whether a text that the model reads has a mark of this format."""
        return any(map(self._has_mark, (asked.above, asked.region, asked.below)))

    def without_marks(self, asked: EditPrompt) -> EditPrompt:
        """Return the prompt without related code and reports that have a mark of this format."""
        related = [one for one in asked.related if not any(map(self._has_mark, one))]
        reports = [one for one in asked.reports if not any(map(self._has_mark, (one.code, one.message)))]
        return attrs.evolve(asked, related=related, reports=reports)

    def _has_mark(self, text: str) -> bool:
        return any(mark in text for mark in (*self.marks, *self.reserved))


def format_named(name: str) -> EditFormat | None:
    """Return the format of the model that calls itself so, or whose file does; None if it was made for none."""
    known = re.sub(r"[\s_]+", "-", name.lower())
    return next((row for row in EDIT_FORMATS if any(part in known for part in row.names)), None)


def format_of(name: str, tokenizer: Tokenizer) -> EditFormat | None:
    """Return what `format_named` does; None also for a model that lacks a token of its format."""
    row = format_named(name)
    has_all = row is not None and all(tokenizer.token_to_id(mark) is not None for mark in row.marks)
    return row if has_all else None


def _lined(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


_FILE = Mark("<|file_sep|>")


def _sweep(asked: EditPrompt) -> list[Piece]:
    pieces: list[Piece] = []
    for path, text in asked.related:
        pieces += [_FILE, f"{path}\n{_lined(text)}"]
    if asked.reports:
        lines = "".join(f"Line {one.line}: {one.message}\n" for one in asked.reports)
        pieces += [_FILE, f"context/diagnostics\n{lines}"]
    for edit in asked.edits:
        pieces += [_FILE, f"{edit.path}.diff\noriginal:\n{_lined(edit.before)}updated:\n{_lined(edit.after)}"]
    pieces += [_FILE, f"original/{asked.path}\n{_before_last(asked)}", _FILE, f"current/{asked.path}\n{asked.region}"]
    return [*pieces, _FILE, f"updated/{asked.path}\n{asked.head}"]


def _before_last(asked: EditPrompt) -> str:
    """Return the region as it was before the newest edit, if that was in it."""
    last = asked.edits[-1] if asked.edits else None
    if last is None or not last.after.strip() or asked.region.count(last.after) != 1:
        return asked.region
    return asked.region.replace(last.after, last.before)


def _ended(asked: EditPrompt, text: str) -> str:
    """Return a text that ends with as many newlines as the region: models leave some out."""
    return text.rstrip("\n") + asked.region[len(asked.region.rstrip("\n")) :]


def _whole(asked: EditPrompt, answer: str) -> str | None:
    return _ended(asked, asked.head + answer) if answer.strip() else None


_SUFFIX, _PREFIX, _MIDDLE = Mark("<[fim-suffix]>"), Mark("<[fim-prefix]>"), Mark("<[fim-middle]>")
_NAME = Mark("<filename>")
_CURSOR, _CURRENT, _SEPARATOR, _UPDATED = "<|user_cursor|>", "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
_NO_EDITS = "NO_EDITS"
_MARKER = re.compile(r"<\|marker_(\d{1,4})\|>")


def _zeta(asked: EditPrompt, region: str) -> list[Piece]:
    pieces: list[Piece] = [_SUFFIX, _lined(asked.below) or "\n", _PREFIX]
    for path, text in asked.related:
        pieces += [_NAME, f"{path}\n{_lined(text)}\n"]
    if asked.edits:
        history = "\n".join(f"--- a/{edit.path}\n+++ b/{edit.path}\n{unified(edit)}" for edit in asked.edits)
        pieces += [_NAME, f"edit_history\n{history}\n"]
    return [*pieces, _NAME, f"{asked.path}\n{asked.above}{region}", _MIDDLE]


def unified(edit: PastEdit) -> str:
    """Return an edit as one hunk of a diff, without lines around it."""
    old, new = edit.before.splitlines(), edit.after.splitlines()
    head = f"@@ -{edit.line},{len(old)} +{edit.line},{len(new)} @@\n"
    return head + "".join(f"-{line}\n" for line in old) + "".join(f"+{line}\n" for line in new)


def _zeta2(asked: EditPrompt) -> list[Piece]:
    return [*_zeta(asked, f"{_CURRENT}{asked.with_cursor(_CURSOR)}{_SEPARATOR}"), asked.head]


def _read_zeta2(asked: EditPrompt, answer: str) -> str | None:
    text, ended, _ = answer.partition(_UPDATED)
    if not ended:
        return None
    return asked.region if text.strip() == _NO_EDITS else asked.head + text.replace(_CURSOR, "")


_LEAST_BLOCK, _MOST_BLOCK = 6, 16


def marker_offsets(region: str) -> list[int]:
    """Return where zeta2.1 has its numbered marks: both ends, and lines after blank ones or after many lines."""
    starts, at = [0], 0
    for line in region.splitlines(keepends=True):
        at += len(line)
        starts.append(at)
    offsets, last = [0], 0
    for number, (start, end) in enumerate(pairwise(starts)):
        lines = number - last
        after_blank = number > 0 and not region[starts[number - 1] : start].strip()
        left = len(starts) - 1 - number
        is_break = lines >= _LEAST_BLOCK and after_blank and left >= _LEAST_BLOCK
        if region[start:end].strip() and (is_break or lines >= _MOST_BLOCK):
            offsets.append(start)
            last = number
    return [*offsets, len(region)]


def _zeta21(asked: EditPrompt) -> list[Piece]:
    offsets, text = marker_offsets(asked.region), ""
    for number, (start, end) in enumerate(pairwise(offsets), 1):
        block = asked.region[start:end]
        if start <= asked.cursor < end or (asked.cursor == end == len(asked.region)):
            block = block[: asked.cursor - start] + _CURSOR + block[asked.cursor - start :]
        text += f"<|marker_{number}|>\n{block}"
    return _zeta(asked, f"{text}<|marker_{len(offsets)}|>\n")


def _read_zeta21(asked: EditPrompt, answer: str) -> str | None:
    found, offsets = list(_MARKER.finditer(answer)), marker_offsets(asked.region)
    if len(found) < 2:
        return None
    first, last = int(found[0][1]), int(found[-1][1])
    if first == last:
        return asked.region
    if not 1 <= first < last <= len(offsets):
        return None
    text = _MARKER.sub("", answer[found[0].end() : found[-1].start()].removeprefix("\n")).replace(_CURSOR, "")
    return asked.region[: offsets[first - 1]] + _lined(text) + asked.region[offsets[last - 1] :]


_TURN, _TURN_END = Mark("<|im_start|>"), Mark("<|im_end|>")
_FENCE = "```"
_ASK = (
    "You are a code editor. The user changed a part of a file. Make the edits that follow from it in the other part: "
    "the same change in the same code, new arguments in calls, new names in uses. If nothing follows, repeat the part "
    "unchanged."
)
_EXAMPLES: tuple[tuple[PastEdit, str, str], ...] = (
    (
        PastEdit("", "    log.warn(first.name)\n", "    log.warning(first.name)\n"),
        "def second(item):\n    log.warn(item.id)\n    return item.id\n",
        "def second(item):\n    log.warning(item.id)\n    return item.id\n",
    ),
    (
        PastEdit("", "def send(to, body):\n", "def send(to, body, retries):\n"),
        "def welcome(user, retries):\n    send(user.mail, text)\n    return text\n",
        "def welcome(user, retries):\n    send(user.mail, text, retries)\n    return text\n",
    ),
    (
        PastEdit("", "const limit = 10;\n", "const limit = 20;\n"),
        "function total(items) {\n  return items.length < limit;\n}\n",
        "function total(items) {\n  return items.length < limit;\n}\n",
    ),
    (
        PastEdit("", "  private isOpen = false;\n", "  private open = false;\n"),
        "  close() {\n    this.isOpen = false;\n    this.file.end();\n  }\n",
        "  close() {\n    this.open = false;\n    this.file.end();\n  }\n",
    ),
    (
        PastEdit("", "import {a, b} from 'lib';\n", "import {a as c, b} from 'lib';\n"),
        "function f() {\n  return b(a(1));\n}\n",
        "function f() {\n  return b(c(1));\n}\n",
    ),
)
"""Edits, with a part before and after. The model reads them once: they are the start of every prompt."""


def _asked(edits: Iterable[PastEdit], region: str, reports: Iterable[Report] = ()) -> str:
    made = "".join(
        f"Before:\n{_FENCE}\n{_lined(edit.before)}{_FENCE}\nAfter:\n{_FENCE}\n{_lined(edit.after)}{_FENCE}\n"
        for edit in edits
    )
    made += "".join(f"The editor says of `{one.code}`: {one.message}\n" for one in reports)
    return f"The edit:\n{made}The part:\n{_FENCE}\n{region}{_FENCE}"


def _instruct(asked: EditPrompt) -> list[Piece]:
    pieces: list[Piece] = [_TURN, f"system\n{_ASK}", _TURN_END, "\n"]
    for edit, before, after in _EXAMPLES:
        pieces += [_TURN, f"user\n{_asked([edit], before)}", _TURN_END, "\n"]
        pieces += [_TURN, f"assistant\n{_FENCE}\n{after}{_FENCE}", _TURN_END, "\n"]
    # What changes from edit to edit comes last: the engine keeps what it has read of the rest.
    related = "".join(f"In {path}:\n{_FENCE}\n{_lined(text)}{_FENCE}\n" for path, text in asked.related)
    pieces += [_TURN, f"user\n{related}{_asked(asked.edits, asked.region, asked.reports)}", _TURN_END, "\n"]
    return [*pieces, _TURN, f"assistant\n{_FENCE}\n{asked.head}"]


def _read_fenced(asked: EditPrompt, answer: str) -> str | None:
    text, ended, _ = f"\n{answer}".partition(f"\n{_FENCE}")
    return _ended(asked, asked.head + text[1:]) if ended else None


EDIT_FORMATS = (
    EditFormat(
        "sweep",
        ("sweep-next-edit-0.5b", "sweep-next-edit-1.5b"),
        ("<|file_sep|>", "<|endoftext|>"),
        (),
        "",
        _sweep,
        lambda asked: asked.rest,
        _whole,
    ),
    EditFormat(
        "zeta2.1",
        ("zeta2.1", "zeta-2.1"),
        ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>", "<filename>"),
        (_CURSOR, "<|marker_"),
        "<[end\u2581of\u2581sentence]>",
        _zeta21,
        lambda asked: f"<|marker_1|>\n{asked.region}<|marker_{len(marker_offsets(asked.region))}|>",
        _read_zeta21,
    ),
    EditFormat(
        "zeta2",
        ("zeta2", "zeta-2"),
        ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>", "<filename>"),
        (_CURSOR, "<<<<<<< ", "=======\n", _UPDATED),
        _UPDATED,
        _zeta2,
        lambda asked: f"{asked.rest}{_UPDATED}",
        _read_zeta2,
    ),
    EditFormat(
        "instruct",
        ("instruct",),
        ("<|im_start|>", "<|im_end|>"),
        (_FENCE,),
        f"\n{_FENCE}",
        _instruct,
        lambda asked: f"{asked.rest}{_FENCE}",
        _read_fenced,
    ),
)
"""The first row counts whose name is in a model's."""
