"""Two halves of a character (surrogates) that come in two edits become one, as in an editor that counts UTF-16."""

import re

_HALF = re.compile("[\ud800-\udfff]")


def with_halves_joined(old: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return an edit of `old[start:end]` to `text`, widened where a half meets its other one at a border."""
    before, after = old[max(start - 1, 0) : start], old[end : end + 1]
    if _is_high(before) and _is_low(text[:1] or after):
        start, text = start - 1, before + text
    if _is_high(text[-1:]) and _is_low(after):
        end, text = end + 1, text + after
    if _HALF.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return start, end, text


def _is_high(half: str) -> bool:
    return "\ud800" <= half <= "\udbff"


def _is_low(half: str) -> bool:
    return "\udc00" <= half <= "\udfff"
