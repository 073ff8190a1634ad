"""The embedded family's tokenizer: text that looks like a mark is text, and every token stands for its own bytes."""

import codecs
from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Read tokenizer.json such that a "<mask>" in a user's file is five characters and not the mask."""
    tokenizer = Tokenizer.from_file(str(path))
    # Qwen's has marks that it does not call special, as <|fim_prefix|>; those would be found in any text.
    added = [token for token in tokenizer.get_added_tokens_decoder().values() if not token.special]
    tokenizer.add_special_tokens([AddedToken(token.content, special=True, normalized=False) for token in added])
    tokenizer.encode_special_tokens = True
    return tokenizer


class Pieces:
    """The bytes of every token; special tokens have none."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # GPT-2's table from bytes to printable characters.
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        table = {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}
        special = set(tokenizer.get_added_tokens_decoder())
        self.bytes = [b""] * (1 + max(tokenizer.get_vocab().values()))
        for text, token in tokenizer.get_vocab().items():
            if token not in special:
                self.bytes[token] = bytes(table[character] for character in text)

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string a token; a character that is split over tokens goes to the last one."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return [decoder.decode(self.bytes[token], at == len(tokens) - 1) for at, token in enumerate(tokens)]

    def breaks_line(self, token: int) -> bool:
        return b"\n" in self.bytes[token]
