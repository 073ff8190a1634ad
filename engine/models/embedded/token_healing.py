"""Token healing: a fill begins where the last piece before the cursor begins, and must start with its typed text.

A model has read `self` as one token a thousand times, but `sel` followed by `f` hardly ever. So the piece at the cursor
(a word with the space before it, or a run of punctuation) is cut off the prefix, and the first tokens of the fill must
be compatible with it. While a word is typed the context stays as it is; only the compatible tokens change. Training
cuts its holes in the same way (training/collator.py)."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from tokenizers import Tokenizer

LONGEST = 24
"""Characters of a piece. A longer one stays in the prefix: no token is longer, so it ends in a token of its own."""
_WINDOW = 256


def unfinished(tokenizer: Tokenizer, prefix: str) -> str:
    """Return the end of a prefix that the next token may begin with: the last piece of its line, or "".

    A newline followed by indentation is finished, because an editor wrote that, but for its last space: a word's token
    has the space before it. At the very start of a line the indentation may still come.
    """
    line = prefix[-_WINDOW:]
    line = line[max(0, line.rfind("\n")) :]
    if not line or tokenizer.pre_tokenizer is None:
        return ""
    start: int = tokenizer.pre_tokenizer.pre_tokenize_str(line)[-1][1][0]
    indented = line[start] == "\n" and len(line) - start > 1
    if indented:
        return " " if line.endswith(" ") else ""
    return "" if len(line) - start > LONGEST else line[start:]


class CompatibleTokens:
    """Finds the tokens that may come where something is typed already. `token_bytes` are the bytes of each token."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self._token_of = {text: token for token, text in enumerate(token_bytes) if text}
        self._texts = sorted(self._token_of)
        self._tokens = [self._token_of[text] for text in self._texts]

    def of(self, typed: bytes) -> list[int]:
        """Return the tokens that begin with `typed`, and those that `typed` begins with."""
        length = len(typed)
        starts = [typed[:end] for end in range(1, length) if typed[:end] in self._token_of]
        first = bisect_left(self._texts, typed)
        stop = bisect_right(self._texts, typed, key=lambda text: text[:length])
        return [*(self._token_of[start] for start in starts), *self._tokens[first:stop]]
