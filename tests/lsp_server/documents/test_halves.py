"""Halves of a character that come in several edits."""

import pytest

from lsp_server.documents.store import with_halves_joined

HIGH, LOW, WHOLE = "\ud83d", "\ude00", "\U0001f600"


@pytest.mark.parametrize(
    ("old", "start", "end", "text", "new"),
    [
        (f"a{HIGH}", 2, 2, f"{LOW}b", f"a{WHOLE}b"),
        (f"{LOW}b", 0, 0, f"a{HIGH}", f"a{WHOLE}b"),
        (f"{HIGH}x{LOW}", 1, 2, "", WHOLE),
        (f"{HIGH}x{LOW}", 1, 2, f"{LOW}{HIGH}", WHOLE * 2),
        ("ab", 1, 1, HIGH, f"a{HIGH}b"),
        ("ab", 1, 1, f"{LOW}{HIGH}", f"a{LOW}{HIGH}b"),
        ("", 0, 0, "", ""),
    ],
)
def test_two_halves_that_meet_are_one_character(old: str, start: int, end: int, text: str, new: str) -> None:
    first, last, joined = with_halves_joined(old, start, end, text)
    assert old[:first] + joined + old[last:] == new
