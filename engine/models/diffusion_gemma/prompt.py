"""The layout of a hole: the encoder's prompt, and the start of the suffix at the end of the canvas.

    plain        <bos> related code, path, code above | middle, suffix
    instructed   <bos> <turn> task, related code, path, code below </turn> <turn> code above | middle, suffix

An instruction-tuned model gets the task as a question, and its answer begins with the code above. So typing only
appends to the prompt, and the encoder's cache stays valid. The rest of the cursor's line is not in the prompt: editors
that close brackets change it every few keys, and the suffix on the canvas has it anyway.
"""

from typing import Literal, Protocol

import attrs

from engine.fill.interface import Layout
from engine.models.stock.snippets import heading, related_tokens
from engine.protocol.messages import Fill, Snippet, left_edge

PromptMode = Literal["plain", "instructed"]
SUFFIX_TOKENS = 64
"""Tokens of the suffix on the canvas, at most a quarter of the canvas."""
TASK = (
    "Continue the file below at its end with the code that is missing between that end and the code that follows. "
    "Write code only, and stop where the code that follows begins.\n"
)
_TOKEN_CHARACTERS = 8
"""A generous bound for the characters per token. Text beyond the window is cut before it is tokenized."""


class Encoder(Protocol):
    """Text to token ids, without special tokens."""

    def __call__(self, text: str) -> list[int]: ...


@attrs.frozen
class TurnTokens:
    """The special tokens that open and close a turn of a conversation."""

    open: int
    close: int


@attrs.frozen
class Prompt:
    """Lays out holes. `window` counts the positions of context and canvas; `turns` is None for the plain layout."""

    encode: Encoder
    begin: int
    window: int
    canvas: int
    turns: TurnTokens | None

    @property
    def mode(self) -> PromptMode:
        return "plain" if self.turns is None else "instructed"

    def lay_out(self, fill: Fill) -> Layout:
        """Return the layout of a hole.

        If the code above exceeds the window, its left edge moves in strides of a quarter, so that most key presses keep
        the cached context.
        """
        prefix, suffix = fill.prefix.replace("\r\n", "\n"), fill.suffix.replace("\r\n", "\n")
        after = self.encode(suffix[: SUFFIX_TOKENS * _TOKEN_CHARACTERS])[: min(SUFFIX_TOKENS, self.canvas // 4)]
        room = self.window - self.canvas - min(fill.max_tokens, self.window // 4)
        _, newline, below = suffix.partition("\n")
        head = self._head(fill.path, fill.snippets, newline + below, room // 2)
        reach = max(1, room) * _TOKEN_CHARACTERS
        above = self.encode(prefix[left_edge(len(prefix), 2 * reach, reach) :])
        space = room - len(head)
        above = above[left_edge(len(above), space, space // 4) :]
        return Layout(context=[*head, *above], after=after)

    def _head(self, path: str, snippets: list[Snippet], below: str, room: int) -> list[int]:
        file_heading = self.encode(heading(path)) if path else []
        if self.turns is None:
            related = related_tokens(self.encode, snippets, room - len(file_heading) - 1)
            return [self.begin, *related, *file_heading]
        code_below = self.encode(f"The code that follows:\n{below[: room // 2 * _TOKEN_CHARACTERS]}")[: room // 2]
        fixed = [self.begin, self.turns.open, *self.encode("user\n"), *self.encode(TASK)]
        closing = [self.turns.close, *self.encode("\n"), self.turns.open, *self.encode("model\n```\n")]
        remaining = room - len(fixed) - len(closing) - len(file_heading) - len(code_below)
        related = related_tokens(self.encode, snippets, remaining)
        return [*fixed, *related, *file_heading, *code_below, *closing]
