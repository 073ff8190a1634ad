"""The tokens of lines are remembered, within a bound."""

from hypothesis import given
from hypothesis import strategies as st

from engine.models.stock.token_bytes import PIECE, LineTokens


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
