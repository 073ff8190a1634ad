"""The tokens of lines are remembered, within a bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers
from tokenizers import Tokenizer as Bpe
from tokenizers.models import BPE

from engine.models.left_to_right.gguf_tokenizer import PIECES
from engine.models.stock.token_bytes import PIECE, LineTokens, parts_of


class Tokenizer:
    """A token for each character, and the texts that were tokenized."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, text: str) -> list[int]:
        self.read.append(text)
        return [ord(char) for char in text]


def test_a_line_is_tokenized_once() -> None:
    tokenizer = Tokenizer()
    lines = LineTokens(tokenizer)
    assert lines.of("ab") == lines.of("ab") == [97, 98]
    assert tokenizer.read == ["ab"]


def test_a_key_in_a_very_long_line_tokenizes_a_piece_of_it() -> None:
    tokenizer = Tokenizer()
    lines = LineTokens(tokenizer)
    long = "x" * PIECE + "y" * PIECE
    assert lines.of(long) == [ord(char) for char in long]
    tokenizer.read.clear()
    assert lines.of(long + "z") == [ord(char) for char in long + "z"]
    assert tokenizer.read == ["z"]


@given(st.lists(st.text(max_size=300), max_size=60))
def test_what_is_remembered_stays_within_its_bound(texts: list[str]) -> None:
    lines = LineTokens(Tokenizer(), most_bytes=20_000)
    for text in texts:
        assert lines.of(text) == [ord(char) for char in text]
        assert lines.bytes <= 20_000


def test_the_older_lines_are_forgotten_first() -> None:
    tokenizer = Tokenizer()
    lines = LineTokens(tokenizer, most_bytes=3_000)
    for number in range(13):
        lines.of(str(number))
    tokenizer.read.clear()
    lines.of("12")
    assert tokenizer.read == []
    lines.of("0")
    assert tokenizer.read == ["0"]


WHITE = st.lists(
    st.sampled_from(["\n", " ", "  ", "\t", "\x0c", "\x1c", "\u2028", "\xa0", "a", ":", ")", "'s", "1", "é"])
)


def with_pieces_of(pre: str) -> Bpe:
    tokenizer = Bpe(BPE())
    splits = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in PIECES[pre]]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    return tokenizer


@pytest.mark.parametrize("pre", PIECES)
@given(texts=WHITE)
def test_the_pieces_of_a_texts_parts_are_those_of_the_text(pre: str, texts: list[str]) -> None:
    tokenizer, text = with_pieces_of(pre), "".join(texts)

    def pieces(part: str) -> list[str]:
        return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(part)]

    parts = parts_of(tokenizer)(text)
    assert "".join(parts) == text
    assert [piece for part in parts for piece in pieces(part)] == pieces(text)


@pytest.mark.parametrize("pre", PIECES)
def test_code_is_cut_into_its_lines(pre: str) -> None:
    parts = parts_of(with_pieces_of(pre))("if a:\n    b()\n\n    c()")
    assert [part.strip() for part in parts] == ["if a:", "b()", "c()"]
