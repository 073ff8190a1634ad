"""How a hole is laid out for the embedded model: one token stream, the same in training and in the editor.

    <file> path, related code ... <file> path, code far above <suffix> code far below <suffix> lines below
    <prefix> code above <tail> rest of the line <middle> | canvas
    <prefix> code above | canvas                                at the end of a line, if the anchor is "text"

At the end of a line the middle goes on where the code above ends, as a left-to-right parent expects. Elsewhere the rest
of the line comes right before the middle, because that is what the middle has to fit. An editor that closes brackets
changes it with every other key, and only that is read again.

Reading a token costs a third of a millisecond, and what is read stays cached up to the first token that changes. So
what changes least comes first. Related code of other files is held for some twelve lines (engine/memory/windows.py).
What is far above and far below begins and ends at places that stay where they are while the cursor moves some lines;
what is near the cursor is read again then.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal, Protocol

import attrs
from tokenizers import Tokenizer

from engine.models.stock.token_bytes import MOST_BYTES, LineTokens, TokenBytes
from engine.protocol.messages import Snippet, left_edge

LONGEST = 24
"""Characters of a piece. A longer one stays in the prefix: no token is longer, so it ends in a token of its own."""
_WINDOW = 256


def unfinished(tokenizer: Tokenizer, prefix: str) -> str:
    """Return the end of a prefix that the next token may begin with: the last piece of its line, or "".

    A newline followed by indentation is finished, because an editor wrote that, but for its last space: a word's token
    has the space before it. At the very start of a line the indentation may still come.
    """
    line = prefix[-_WINDOW:]
    line = line[max(0, line.rfind("\n")) :]
    if not line or tokenizer.pre_tokenizer is None:
        return ""
    start: int = tokenizer.pre_tokenizer.pre_tokenize_str(line)[-1][1][0]
    indented = line[start] == "\n" and len(line) - start > 1
    if indented:
        return " " if line.endswith(" ") else ""
    return "" if len(line) - start > LONGEST else line[start:]


class CompatibleTokens:
    """Finds the tokens that may come where something is typed already. `token_bytes` are the bytes of each token."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        tokens = sorted(range(len(token_bytes)), key=token_bytes.__getitem__)
        first = bisect_right(tokens, b"", key=token_bytes.__getitem__)
        self._tokens = array("i", tokens[first:])
        self._texts = [token_bytes[token] for token in tokens[first:]]

    def of(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those that `typed` begins with."""
        length, found = len(typed), list[int]()
        for start in (typed[:end] for end in range(1, length)):
            place = bisect_left(self._texts, start)
            if self._texts[place : place + 1] == [start]:
                found.append(self._tokens[place])
        first = bisect_left(self._texts, typed)
        stop = bisect_right(self._texts, typed, key=lambda text: text[:length])
        return found + self._tokens[first:stop].tolist()


Anchor = Literal["mark", "text"]
"""What comes right before the middle at the end of a line: the mark <middle>, or the code above."""
PATH_PARTS = 3
_TOKEN_CHARACTERS = 8
"""Tokens are shorter on average, so this many characters a token are always enough text."""


class Encoder(Protocol):
    """Text to token ids, without special tokens, line by line."""

    def __call__(self, text: str) -> list[int]: ...

    def starts_line(self, token: int) -> bool:
        """Return whether a line begins with this token."""
        ...


class LineEncoder:
    """Implements Encoder, in training and in the editor. Remembers the tokens of lines, at most about `most_bytes`.

    This is exact for lines shorter than a piece (stock/token_bytes.py), because no token crosses the start of a line.
    """

    def __init__(self, tokenizer: Tokenizer, token_bytes: TokenBytes, most_bytes: int = MOST_BYTES) -> None:
        self._lines = LineTokens(lambda line: tokenizer.encode(line, add_special_tokens=False).ids, most_bytes)
        self._token_bytes = token_bytes

    def __call__(self, text: str) -> list[int]:
        if "\r" in text:  # it may share a token with the newline
            return list(self._lines.of(text))
        first, *others = text.split("\n")
        lines = (first, *("\n" + other for other in others))
        return [token for line in lines for token in self._lines.of(line)]

    def starts_line(self, token: int) -> bool:
        return self._token_bytes.breaks_line(token)


@attrs.frozen
class SpecialTokens:
    """The ids of the special tokens."""

    pad: int
    suffix: int
    prefix: int
    tail: int
    middle: int
    end: int
    mask: int
    file: int


@attrs.frozen
class Limits:
    """The most tokens of the stream up to <middle>, and of its parts; where near and far part.

    stream: of all but related code. related: of that, with its paths. below: of the code far below. lines_below: of the
    lines between the cursor and it. tail: of the rest of the line.
    near: of the code near above; its first token moves by strides of `near_stride`.
    line_stride: the lines below that are near are fewer than this; their number counts from the end of the file.
    """

    stream: int
    below: int
    lines_below: int
    tail: int
    path: int
    near: int
    near_stride: int
    line_stride: int = 8
    related: int = 0

    @classmethod
    def of(cls, stream: int, below: int, related: int = 0) -> "Limits":
        """Return limits that leave at least half of the stream for the code above, if `below` is a quarter of it."""
        part = (stream + related) // 12
        near = min(128, 2 * part), min(64, part)
        return cls(stream, below, min(64, part), min(32, part), min(24, part), *near, related=related)


@attrs.frozen
class StreamLayout:
    """A laid-out hole. `tokens` ends before `anchor`, the first anchor. `near` is the span of the code near above; it
    ends with the anchor if that is no mark.

    all_above: the tokens of the code above without any limit, for the memory.
    """

    tokens: list[int]
    anchor: int
    near: slice
    all_above: list[int]


LEAST_RELATED = 48
"""Tokens of room that a snippet needs: a few lines alone say nothing."""


def short_path(path: str) -> str:
    """Return the last parts of a path. They tell more than where a user keeps the project."""
    return "/".join(path.replace("\\", "/").split("/")[-PATH_PARTS:])


def lay_out(
    encode: Encoder,
    special: SpecialTokens,
    limits: Limits,
    prefix: str,
    suffix: str,
    path: str,
    snippets: list[Snippet],
    anchor: Anchor = "mark",
) -> StreamLayout:
    """Return the stream of a hole, within `limits`.

    snippets: related code of other files, the best first. The best comes last, next to the code of the hole's own file.

    If the code above is too long, its left edge moves in strides of a quarter of the room. So most keystrokes leave the
    edge where it is, and with it the cached context.
    """
    line, newline, rest = suffix.partition("\n")
    near_below, far_below = _parted(newline + rest, limits.line_stride)
    lines = encode(near_below[: limits.lines_below * _TOKEN_CHARACTERS])[: limits.lines_below]
    below = encode(far_below[: limits.below * _TOKEN_CHARACTERS])[: limits.below]
    tail = encode(line[: limits.tail * _TOKEN_CHARACTERS])[: limits.tail]
    named = [special.file, *encode(short_path(path))[: limits.path], *encode("\n")] if path else []
    # Room for the longest lines and tail, not for these: they change with the cursor, and the edge shall not.
    room = limits.stream - len(below) - limits.lines_below - limits.tail - len(named) - 4
    related = _related(encode, special, limits, snippets)
    all_above = encode(prefix)
    edge = _line_edge(encode, all_above, left_edge(len(all_above), room, room // 4))
    split = max(edge, _line_edge(encode, all_above, left_edge(len(all_above), limits.near, limits.near_stride)))
    head = [*related, *named, *all_above[edge:split]]
    head += [special.suffix, *below, special.suffix, *lines, special.prefix]
    near = all_above[split:]
    ends_line = anchor == "text" and not line.strip()
    tokens = [*head, *near] if ends_line else [*head, *near, special.tail, *tail, special.middle]
    return StreamLayout(tokens[:-1], tokens[-1], slice(len(head), len(head) + len(near)), all_above)


def _related(encode: Encoder, special: SpecialTokens, limits: Limits, snippets: list[Snippet]) -> list[int]:
    """Return as many snippets as there is room for, the last one cut to whole lines."""
    related: list[int] = []
    for snippet in snippets:
        named = [special.file, *encode(short_path(snippet.path))[: limits.path]]
        room = limits.related - len(related) - len(named)
        if room < LEAST_RELATED:
            break
        text = snippet.text if snippet.text.startswith("\n") else "\n" + snippet.text
        # Without tokenizing megabytes, which takes seconds.
        tokens = encode(text[: (room + 1) * _TOKEN_CHARACTERS])
        if len(tokens) > room:
            stop = next((at for at in range(room, 0, -1) if encode.starts_line(tokens[at])), 0)
            tokens = tokens[:stop]
        if tokens:
            related = [*named, *tokens, *related]
    return related


def _line_edge(encode: Encoder, tokens: list[int], edge: int) -> int:
    """Return where the first line after an edge begins; the edge itself if none does soon."""
    if not edge:
        return 0
    return next((at for at in range(edge, min(edge + 48, len(tokens))) if encode.starts_line(tokens[at])), edge)


def _parted(below: str, stride: int) -> tuple[str, str]:
    """Return the lines below that are near, fewer than `stride`, and those that are far.

    Counted from the file's end, so that where they part stays while the cursor moves or lines are written above.
    """
    count = below.count("\n") % stride
    at = 0
    for _ in range(count):
        at = below.find("\n", at + 1)
        if at < 0:
            return below, ""
    return below[:at], below[at:]
