"""The bytes of each token of a Gemma tokenizer. It writes a space as U+2581 and has tokens for single bytes."""

import codecs
import re
from collections.abc import Sequence

from tokenizers import Tokenizer

from engine.models.stock.token_bytes import LineTokens

_SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_UNUSED = re.compile(r"<unused\d+>")
_LINE = re.compile(r"\n*[^\n]+|\n+")


class GemmaTokenBytes:
    """The bytes of every token (none for special tokens), and text to tokens, line by line."""

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
        """Return one string per token. A character that is split over several tokens belongs to the last one."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        last = len(tokens) - 1
        return [decoder.decode(self._bytes.get(token, b""), index == last) for index, token in enumerate(tokens)]

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token's text; none for a special token."""
        return self._bytes.get(token, b"")

    def breaks_line(self, token: int) -> bool:
        return b"\n" in self._bytes.get(token, b"")
