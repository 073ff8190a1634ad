"""Tokenizes text line by line, and remembers the lines: most of a training sequence was seen before."""

import numpy as np
from tokenizers import Tokenizer

from engine.models.stock.token_bytes import TokenBytes

LINES = 1_500_000
"""Lines that are remembered; about 300 MB."""


class LineEncoder:
    """Tokenizes text line by line, as the engine does. This is exact: no token crosses the start of a line.

    New lines of a text are tokenized together, and the tokens are split at those with a newline.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, pieces = tokenizer, TokenBytes(tokenizer)
        self._breaks = np.array([pieces.breaks_line(token) for token in range(tokenizer.get_vocab_size())])
        self._known: dict[str, bytes] = {}

    def __call__(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        if "\r" in text:  # it may share a token with the newline
            return self._tokenize(text)
        first, *others = text.split("\n")
        lines = [first, *["\n" + other for other in others]]
        known = self._known
        missing = list(dict.fromkeys(line for line in lines if line not in known and line))
        if missing:
            if len(known) + len(missing) > LINES:
                known.clear()
                missing = list(dict.fromkeys(line for line in lines if line))
            self._learn(missing)
        ids: list[int] = np.frombuffer(b"".join([known[line] for line in lines if line]), np.uint16).tolist()
        return ids

    def starts_line(self, token: int) -> bool:
        """Return whether a line begins with this token."""
        return bool(self._breaks[token])

    def _learn(self, lines: list[str]) -> None:
        """Tokenize lines and remember them. Only the first line may lack a newline before it."""
        ids = np.array(self._tokenize("".join(lines)), np.uint16)
        starts = np.flatnonzero(self._breaks[ids])
        if not lines[0].startswith("\n"):
            starts = np.concatenate(([0], starts))
        for line, part in zip(lines, np.split(ids, starts[1:]), strict=True):
            self._known[line] = part.tobytes()

    def _tokenize(self, text: str) -> list[int]:
        # This takes half the time of encode(), which also computes each token's position in the text.
        ids: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids
