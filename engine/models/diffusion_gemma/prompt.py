"""The layout of a hole: the prompt of the encoder, the start of the suffix on the canvas, and the bytes of the tokens.

    plain        <bos> related code, path, code above | middle, suffix
    instructed   <bos> <turn> task, related code, path, code below </turn> <turn> code above | middle, suffix

An instruction-tuned model gets the task as a question, and its answer begins with the code above. So typing only
appends to the prompt, and the encoder's cache stays valid. The rest of the cursor's line is not in the prompt: editors
that close brackets change it every few keys, and the suffix on the canvas has it anyway.
"""

import re
from collections.abc import Sequence
from typing import Literal, Protocol

import attrs
from tokenizers import Tokenizer

from engine.fill.interface import Layout
from engine.models.stock.token_bytes import LineTokens, decoded
from engine.models.stock.tokenizer import heading, related_tokens
from engine.protocol.messages import HoleRequest, Snippet, left_edge

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

    def lay_out(self, request: HoleRequest) -> Layout:
        """Return the layout of a hole.

        If the code above exceeds the window, its left edge moves in strides of a quarter, so that most key presses keep
        the cached context.
        """
        prefix, suffix = request.prefix.replace("\r\n", "\n"), request.suffix.replace("\r\n", "\n")
        after = self.encode(suffix[: SUFFIX_TOKENS * _TOKEN_CHARACTERS])[: min(SUFFIX_TOKENS, self.canvas // 4)]
        room = self.window - self.canvas - min(request.max_tokens, self.window // 4)
        _, newline, below = suffix.partition("\n")
        head = self._head(request.path, request.snippets, newline + below, room // 2)
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


_SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_UNUSED = re.compile(r"<unused\d+>")
_LINE = re.compile(r"\n*[^\n]+|\n+")


class GemmaTokenBytes:
    """The bytes of every token (none for special tokens), and text to tokens, line by line.

    A Gemma tokenizer writes a space as U+2581 and has tokens for single bytes.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder()
        self._bytes: dict[int, bytes] = {}
        for text, token in tokenizer.get_vocab().items():
            if (token in added and added[token].special) or _UNUSED.fullmatch(text):
                continue
            if byte := _BYTE.fullmatch(text):
                self._bytes[token] = bytes([int(byte[1], 16)])
            else:
                self._bytes[token] = text.replace(_SPACE, " ").encode()
        self._lines = LineTokens(lambda line: tokenizer.encode(line, add_special_tokens=False).ids)

    def encode(self, text: str) -> list[int]:
        """Tokenize line by line; empty lines belong to the next line.

        Lines are cached, because a key press changes only one of them. An edit never changes the tokens of other lines.
        """
        return [token for line in _LINE.findall(text) for token in self._lines.of(line)]

    def without_text(self, vocabulary: int) -> set[int]:
        """Return the tokens below `vocabulary` that have no text: special and unused tokens, and padding of the
        vocabulary."""
        return set(range(vocabulary)) - self._bytes.keys()

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string per token: see decoded."""
        return decoded([self.bytes_of(token) for token in tokens])

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token's text; none for a special token."""
        return self._bytes.get(token, b"")

    def breaks_line(self, token: int) -> bool:
        return b"\n" in self.bytes_of(token)
