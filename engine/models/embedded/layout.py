"""How a hole is laid out for the embedded model: one token stream, the same in training and in the editor.

    <suffix> code below <prefix> <file> path ... code above <tail> rest of the line <middle> | canvas

The code below comes first because it changes least. The text being edited comes last, so the cached start survives. The
rest of the cursor's line comes after the prefix and not with the suffix: an editor that closes brackets changes it with
every other key. At the front of the stream, each such key would discard the whole cached context.
"""

from typing import Protocol

import attrs

from engine.protocol.left_edge import left_edge
from engine.protocol.messages import Snippet

PATH_PARTS = 3
_TOKEN_CHARACTERS = 8
"""Tokens are shorter on average, so this many characters a token are always enough text."""


class Encoder(Protocol):
    """Text to token ids, without special tokens."""

    def __call__(self, text: str) -> list[int]: ...


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
    """The most tokens of the stream up to <middle>; of the code below, the rest of the line and the path in it."""

    stream: int
    below: int
    tail: int
    path: int = 24


@attrs.frozen
class StreamLayout:
    """A laid-out hole. `tokens` ends before <middle>; `below` and `prefix` are where the code below and above are.

    all_above: the tokens of the code above without any limit, for the memory.
    """

    tokens: list[int]
    below: slice
    prefix: slice
    all_above: list[int]


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
) -> StreamLayout:
    """Return the stream of a hole, within `limits`.

    If the code above is too long, its left edge moves in strides of a quarter of the room. So most keystrokes leave the
    edge where it is, and with it the cached context.
    """
    line, newline, rest = suffix.partition("\n")
    below = encode((newline + rest)[: limits.below * _TOKEN_CHARACTERS])[: limits.below]
    tail = encode(line[: limits.tail * _TOKEN_CHARACTERS])[: limits.tail]
    named = [special.file, *encode(short_path(path))[: limits.path], *encode("\n")] if path else []
    room = limits.stream - len(below) - len(tail) - len(named) - 3
    related: list[int] = []
    for snippet in snippets:
        if len(snippet.text) > room // 4 * _TOKEN_CHARACTERS:
            break  # without tokenizing it, which takes seconds for megabytes
        block = [special.file, *encode(short_path(snippet.path))[: limits.path], *encode(snippet.text)]
        if len(related) + len(block) > room // 4:
            break
        related += block
    room -= len(related)
    all_above = encode(prefix)
    above = all_above[left_edge(len(all_above), room, room // 4) :]
    head = [special.suffix, *below, special.prefix, *related, *named]
    return StreamLayout(
        tokens=[*head, *above, special.tail, *tail],
        below=slice(1, 1 + len(below)),
        prefix=slice(len(head), len(head) + len(above)),
        all_above=all_above,
    )
