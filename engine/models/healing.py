"""Token healing: a fill begins where the last piece before the cursor does, and must begin with what is typed of it.

A model has read `self` as one token a thousand times, and `sel` followed by `f` hardly ever. So the piece that the
cursor stands in or behind (a word with the space before it, a run of marks) is taken off the prefix, and the fill's
first tokens are those that agree with it. What is typed of a word no longer changes the context, only which tokens may
come. Training cuts its holes in the same way (training/collator.py).
"""

from bisect import bisect_left
from collections.abc import Sequence

from tokenizers import Tokenizer

LONGEST = 24
"""Characters of a piece beyond which it is left where it is: no token is longer, so it ends in one of its own."""
_WINDOW = 256


def unfinished(tokenizer: Tokenizer, prefix: str) -> str:
    """Return the end of a prefix that its next token may begin with: the last piece of its line, or "".

    A newline with indentation behind it is whole, for an editor has written that; at the start of a line the
    indentation may still come.
    """
    line = prefix[-_WINDOW:]
    line = line[max(0, line.rfind("\n")) :]
    if not line or tokenizer.pre_tokenizer is None:
        return ""
    start: int = tokenizer.pre_tokenizer.pre_tokenize_str(line)[-1][1][0]
    indented = line[start] == "\n" and len(line) - start > 1
    return "" if indented or len(line) - start > LONGEST else line[start:]


class Agreement:
    """Tells which tokens may stand where something is typed already: `pieces` are the bytes of each token."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._sorted = sorted((piece, token) for token, piece in enumerate(pieces) if piece)

    def tokens(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those with which it begins."""
        agreeing: list[int] = []
        for length in range(1, len(typed) + 1):
            start = typed[:length]
            at = bisect_left(self._sorted, (start, -1))
            while at < len(self._sorted) and (
                self._sorted[at][0] == start or (length == len(typed) and self._sorted[at][0].startswith(start))
            ):
                agreeing.append(self._sorted[at][1])
                at += 1
        return agreeing
