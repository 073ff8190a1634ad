"""Reads tokenizer.json so that text which looks like a special token stays text, and gives each token's bytes."""

import codecs
from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from engine.fill.predictions import continues_word


def load_tokenizer(path: Path) -> Tokenizer:
    """Read tokenizer.json. A "<mask>" in a user's file then becomes tokens of text, not the mask."""
    tokenizer = Tokenizer.from_file(str(path))
    # Qwen's tokenizer does not flag all its special tokens (<|fim_prefix|>), and would match these in any text.
    added = [token for token in tokenizer.get_added_tokens_decoder().values() if not token.special]
    tokenizer.add_special_tokens([AddedToken(token.content, special=True, normalized=False) for token in added])
    tokenizer.encode_special_tokens = True
    return tokenizer


class TokenBytes:
    """The bytes of every token of a byte-level BPE. Special tokens have none."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # GPT-2's table from bytes to printable characters.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        table = {chr(byte): byte for byte in printable} | {chr(256 + index): byte for index, byte in enumerate(others)}
        special = set(tokenizer.get_added_tokens_decoder())
        self.bytes = [b""] * (1 + max(tokenizer.get_vocab().values()))
        for text, token in tokenizer.get_vocab().items():
            if token not in special:
                self.bytes[token] = bytes(table[character] for character in text)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string per token. A character that is split over several tokens belongs to the last one."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        last = len(tokens) - 1
        return [decoder.decode(self.bytes[token], index == last) for index, token in enumerate(tokens)]

    def continuing_words(self) -> list[int]:
        """Return the tokens that go on with a word: their text begins with a letter, a digit or an underscore."""
        return [token for token, text in enumerate(self.bytes) if continues_word(text)]

    def breaks_line(self, token: int) -> bool:
        return b"\n" in self.bytes[token]
