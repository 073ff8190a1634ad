"""Where a written text and the code below meet: one token may hold the end of a line and its newline."""

from collections.abc import Sequence

import pytest
from reciting_model import TokenReciter
from support.coder import coder_or_skip

from engine.fill.follows import FOLLOWS, Seam, seam
from engine.library.gguf_file import read_header
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.stock.token_bytes import TokenBytes

BELOW = "\n        total += value\n    return total\n"


@pytest.fixture(scope="module")
def model() -> TokenReciter:
    tokenizer = tokenizer_of_header(read_header(coder_or_skip()))
    reciter = TokenReciter(TokenBytes(tokenizer), [], sight=0)
    reciter.tokenizer = tokenizer
    return reciter


def tokens(model: TokenReciter, text: str) -> list[int]:
    ids: list[int] = model.tokenizer.encode(text).ids
    return ids


def text_of(model: TokenReciter, ids: Sequence[int]) -> str:
    return "".join(model.texts_of(ids))


def met(model: TokenReciter, written: Sequence[int], text: str) -> Seam:
    return seam(model, written, text, tokens(model, BELOW)[:FOLLOWS])


def test_a_token_with_the_newline_is_followed_by_what_comes_after_the_newline(model: TokenReciter) -> None:
    written = tokens(model, "for value in values:\n")
    assert text_of(model, written[-1:]) == ":\n"
    found = met(model, written, "for value in values:")
    assert (found.tokens, found.again) == (written, 0)
    assert BELOW.startswith("\n" + text_of(model, found.follows))


def test_a_text_that_ends_before_the_newline_is_read_again_with_it(model: TokenReciter) -> None:
    written = tokens(model, "for value in values:")
    found = met(model, written, "for value in values:")
    assert (found.tokens, found.again) == (written[:-1], 1)
    assert text_of(model, found.follows[:1]) == ":\n"


def test_a_cut_text_meets_the_code_below_where_it_was_cut(model: TokenReciter) -> None:
    written = tokens(model, "x = 1\ny = 2\n")
    found = met(model, written[:4], "x = 1")
    read = text_of(model, found.tokens) + text_of(model, found.follows)
    assert ("x = 1" + BELOW).startswith(read)
    assert "total +=" in read


@pytest.mark.parametrize("below", ["\n", "\n\n", " "])
def test_there_is_always_a_token_to_look_at(model: TokenReciter, below: str) -> None:
    for text in ("a:", "a:\n", "", "\u00e9"):
        written = tokens(model, text)
        found = seam(model, written, text.rstrip("\n"), tokens(model, below))
        assert found.follows
        assert len(found.tokens) + found.again == len(written)
