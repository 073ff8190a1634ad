"""How a hole is laid out: what the encoder reads, and the suffix that stands at the end of the canvas.

    plain        <bos> related code, path, code above | middle, suffix
    instructed   <bos> <turn> task, related code, path, code below </turn> <turn> code above | middle, suffix

A model tuned to instructions is told the task and begins its answer with the code above: so typing only appends, and
what the encoder has read stays read. The rest of the cursor's line is not in the prompt, since editors that close
brackets change it with every other key; it is in the suffix behind the middle anyway.
"""

from typing import Literal, Protocol

import attrs

from engine.fill.interface import Layout
from engine.models.stock.snippets import heading, related_tokens
from engine.protocol.messages import Fill, Snippet

PromptMode = Literal["plain", "instructed"]
SUFFIX_TOKENS = 64
"""Tokens of the suffix that stand in the canvas, if it is four times as long at least."""
TASK = (
    "Continue the file below at its end with the code that is missing between that end and the code that follows. "
    "Write code only, and stop where the code that follows begins.\n"
)
_CHARACTERS = 8
"""More characters than this a token does not stand for: what is cut anyway is not tokenized."""


class Encoder(Protocol):
    """Text to token ids, without special tokens."""

    def __call__(self, text: str) -> list[int]: ...


@attrs.frozen
class TurnMarks:
    """The tokens that open and close a turn of a conversation."""

    open: int
    close: int


@attrs.frozen
class Prompt:
    """`window` counts all positions there are, of context and canvas; `turns` is None for the plain layout."""

    encode: Encoder
    begin: int
    window: int
    canvas: int
    turns: TurnMarks | None

    @property
    def mode(self) -> PromptMode:
        return "plain" if self.turns is None else "instructed"

    def lay_out(self, fill: Fill) -> Layout:
        """Return the layout of a hole; the code above is cut where the window ends, in strides of a quarter of it."""
        prefix, suffix = fill.prefix.replace("\r\n", "\n"), fill.suffix.replace("\r\n", "\n")
        after = self.encode(suffix[: SUFFIX_TOKENS * _CHARACTERS])[: min(SUFFIX_TOKENS, self.canvas // 4)]
        room = self.window - self.canvas - min(fill.max_tokens, self.window // 4)
        _, newline, below = suffix.partition("\n")
        head = self._head(fill.path, fill.snippets, newline + below, room // 2)
        above = self.encode(prefix)
        space = room - len(head)
        if len(above) > space:
            stride = max(1, space // 4)
            above = above[-(-(len(above) - space) // stride) * stride :]
        return Layout(context=[*head, *above], after=after)

    def _head(self, path: str, snippets: list[Snippet], below: str, room: int) -> list[int]:
        named = self.encode(heading(path)) if path else []
        if self.turns is None:
            related = related_tokens(self.encode, snippets, room - len(named) - 1)
            return [self.begin, *related, *named]
        follows = self.encode(f"The code that follows:\n{below[: room // 2 * _CHARACTERS]}")[: room // 2]
        fixed = [self.begin, self.turns.open, *self.encode("user\n"), *self.encode(TASK)]
        closing = [self.turns.close, *self.encode("\n"), self.turns.open, *self.encode("model\n```\n")]
        left = room - len(fixed) - len(closing) - len(named) - len(follows)
        related = related_tokens(self.encode, snippets, left)
        return [*fixed, *related, *named, *follows, *closing]
