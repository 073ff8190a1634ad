"""Reads tokenizer.json so that text which looks like a special token stays text, and gives each token's bytes."""

import codecs
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers

from engine.fill.sampler import continuing
from engine.json_file import unpacked

MOST_BYTES = 16 * 1024 * 1024
PIECE = 2000
"""Characters. A longer line, as minified code has, is tokenized in pieces, of which a key changes only one."""
_BYTES_A_TOKEN = 40
_BYTES_A_LINE = 200
_WIDEST = 4


def use_bytes(tokenizer: Tokenizer, patterns: Sequence[str]) -> None:
    """Have a tokenizer split text by these patterns, one after the other, and then into bytes."""
    splits = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()


class LineTokens:
    """Tokenizes lines with `encode`. It keeps at most about `most_bytes`: then it forgets the older half."""

    def __init__(self, encode: Callable[[str], list[int]], most_bytes: int = MOST_BYTES) -> None:
        self._encode, self._most_bytes = encode, most_bytes
        self._known: dict[str, list[int]] = {}
        self.bytes = 0
        """What the remembered lines take, estimated."""

    def of(self, line: str) -> list[int]:
        """Return the tokens of a line, which the caller must not change."""
        if len(line) > PIECE:
            pieces = (line[start : start + PIECE] for start in range(0, len(line), PIECE))
            return [token for piece in pieces for token in self.of(piece)]
        tokens = self._known.get(line)
        if tokens is None:
            tokens = self._known[line] = self._encode(line)
            self.bytes += _size(line, tokens)
            if self.bytes > self._most_bytes:
                self._forget()
        return tokens

    def _forget(self) -> None:
        for line in list(self._known)[: (len(self._known) + 1) // 2]:
            self.bytes -= _size(line, self._known.pop(line))


def parts_after_breaks(text: str) -> list[str]:
    """Cut a text where a line begins that has more than white space.

    For Qwen's and Llama 3's tokenizers, of which no token goes from one line to the code of the next.
    """
    first, *lines = text.split("\n")
    parts = [first]
    for line in lines:
        parts[-1] += "\n"
        if line and not line.isspace():
            parts.append(line)
        else:
            parts[-1] += line
    return parts


def parts_before_breaks(text: str) -> list[str]:
    """Cut a text before each newline that ends a line's code: for GPT-2's tokenizers."""
    first, *lines = text.split("\n")
    parts = [first]
    for line in lines:
        if parts[-1] and not parts[-1][-1].isspace():
            parts.append("\n" + line)
        else:
            parts[-1] += "\n" + line
    return parts


def parts_of(tokenizer: Tokenizer) -> Callable[[str], list[str]]:
    """Return what cuts a text into parts whose tokens, joined, are the text's; the text stays whole if none is known.

    A long line is not exact: see PIECE. No text may have a carriage return.
    """
    example = "a:\n    b"
    pieces = [] if tokenizer.pre_tokenizer is None else tokenizer.pre_tokenizer.pre_tokenize_str(example)
    starts = {start for _, (start, _) in pieces}
    if example.index(" ") in starts:
        return parts_after_breaks
    return parts_before_breaks if example.index("\n") in starts else lambda text: [text]


def _size(line: str, tokens: list[int]) -> int:
    width = 1 if line.isascii() else _WIDEST
    return _BYTES_A_LINE + width * len(line) + _BYTES_A_TOKEN * len(tokens)


def _characters() -> str:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return "".join(chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256))


_BYTES = codecs.charmap_build(_characters())
"""GPT-2's table from printable characters to bytes."""


def load_tokenizer(path: Path) -> Tokenizer:
    """Read tokenizer.json, or where there is none, the same packed by gzip: tokenizer.json.gz.

    A "<mask>" in a user's file then becomes tokens of text, not the mask. Raises ValueError or what tokenizers raises.
    """
    packed = path.with_name(f"{path.name}.gz")
    is_packed = packed.exists() and not path.exists()
    tokenizer = Tokenizer.from_buffer(unpacked(packed)) if is_packed else Tokenizer.from_file(str(path))
    # Qwen's tokenizer does not flag all its special tokens (<|fim_prefix|>), and would match these in any text.
    added = [token for token in tokenizer.get_added_tokens_decoder().values() if not token.special]
    tokenizer.add_special_tokens([AddedToken(token.content, special=True, normalized=False) for token in added])
    tokenizer.encode_special_tokens = True
    return tokenizer


def token_texts(tokenizer: Tokenizer) -> list[str]:
    """Return the text of each token in GPT-2's printable characters, by its id; "" for special and missing ones."""
    vocabulary = tokenizer.get_vocab()
    texts = [""] * (1 + max(vocabulary.values(), default=-1))
    for text, token in vocabulary.items():
        texts[token] = text
    for token in tokenizer.get_added_tokens_decoder():
        texts[token] = ""
    return texts


def decoded(parts: Sequence[bytes]) -> list[str]:
    """Return one string per token's bytes. A character that is split over several tokens belongs to the last one."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [decoder.decode(part, number == len(parts)) for number, part in enumerate(parts, 1)]


class TokenBytes:
    """The bytes of every token of a byte-level BPE. Special tokens have none."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str] | None = None) -> None:
        """texts: those of token_texts, where they are known. Raises KeyError for another kind of tokenizer."""
        texts = token_texts(tokenizer) if texts is None else texts
        try:  # all at once: a vocabulary has 150,000 texts
            data, _ = codecs.charmap_encode("".join(texts), "strict", _BYTES)
        except UnicodeEncodeError as error:
            raise KeyError(error.object[error.start : error.end]) from None
        ends = accumulate(map(len, texts), initial=0)
        self.bytes = [data[start:stop] for start, stop in pairwise(ends)]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        """Return one string per token: see decoded."""
        return decoded([self.bytes[token] for token in tokens])

    def continuing_words(self) -> list[int]:
        """Return the tokens that go on with a word: their text begins with a letter, a digit or an underscore."""
        return continuing(self.bytes)

    def breaks_line(self, token: int) -> bool:
        return b"\n" in self.bytes[token]


class OfTokenBytes:
    """The part of fill.interface.Model that says what its tokens stand for."""

    _token_bytes: TokenBytes

    def bytes_of(self, token: int) -> bytes:
        return self._token_bytes.bytes[token]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)

    def breaks_line(self, token: int) -> bool:
        return self._token_bytes.breaks_line(token)
