"""How a hole is laid out for the embedded model: one token stream, the same in training and in the editor.

    <suffix> code below <prefix> <file> path ... code above <tail> rest of the line <middle> | canvas

The code below comes first and changes least; what is typed at is last. The rest of the cursor's line stands after the
prefix and not with the suffix: an editor that closes a bracket for the user changes it with every other key, and had it
come first, every such key would throw the whole cached context away.
"""

from typing import Protocol

import attrs

from engine.protocol.messages import Snippet

PATH_PARTS = 3


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
    """Tokens at the most: the stream up to <middle>, the code below and the rest of the line in it."""

    stream: int
    below: int
    tail: int
    path: int = 24


@attrs.frozen
class Stream:
    """A laid-out hole. `tokens` ends before <middle>; `prefix_at` is where the code above begins."""

    tokens: list[int]
    below: slice
    prefix: slice


def short_path(path: str) -> str:
    """Return the last parts of a path, which say more than where a user keeps the project."""
    return "/".join(path.replace("\\", "/").split("/")[-PATH_PARTS:])


def lay_out(
    encode: Encoder, marks: SpecialTokens, limits: Limits, prefix: str, suffix: str, path: str, snippets: list[Snippet]
) -> Stream:
    """Return the stream of a hole, within `limits`.

    When the code above is too long, its left edge moves in strides of a quarter of the room, so that most keystrokes
    leave the edge, and with it the cached context, where it was.
    """
    line, newline, rest = suffix.partition("\n")
    below = encode((newline + rest)[: limits.below * 8])[: limits.below]
    tail = encode(line[: limits.tail * 8])[: limits.tail]
    named = [marks.file, *encode(short_path(path))[: limits.path], *encode("\n")] if path else []
    room = limits.stream - len(below) - len(tail) - len(named) - 3
    related: list[int] = []
    for snippet in snippets:
        block = [marks.file, *encode(short_path(snippet.path))[: limits.path], *encode(snippet.text)]
        if len(related) + len(block) > room // 4:
            break
        related += block
    room -= len(related)
    above = encode(prefix)
    if len(above) > room:
        stride = max(1, room // 4)
        dropped = -(-(len(above) - room) // stride) * stride
        above = above[dropped:]
    head = [marks.suffix, *below, marks.prefix, *related, *named]
    return Stream(
        tokens=[*head, *above, marks.tail, *tail],
        below=slice(1, 1 + len(below)),
        prefix=slice(len(head), len(head) + len(above)),
    )
