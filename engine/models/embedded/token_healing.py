"""Token healing: a fill begins where the last piece before the cursor does, and must begin with what is typed of it.

A model has read `self` as one token a thousand times, and `sel` followed by `f` hardly ever. So the piece that the
cursor stands in or behind (a word with the space before it, a run of marks) is taken off the prefix, and the fill's
first tokens are those that agree with it. What is typed of a word no longer changes the context, only which tokens may
come. Training cuts its holes in the same way (training/collator.py).
"""

from bisect import bisect_left, bisect_right
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
        self._token_of = {piece: token for token, piece in enumerate(pieces) if piece}
        self._pieces = sorted(self._token_of)
        self._tokens = [self._token_of[piece] for piece in self._pieces]

    def tokens(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those with which it begins."""
        length = len(typed)
        starts = [typed[:end] for end in range(1, length) if typed[:end] in self._token_of]
        first = bisect_left(self._pieces, typed)
        stop = bisect_right(self._pieces, typed, key=lambda piece: piece[:length])
        return [*(self._token_of[start] for start in starts), *self._tokens[first:stop]]
