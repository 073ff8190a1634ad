"""Branches: further holes of a stream, at cursors further up.

What a stream costs is its context, and one hole uses it once. So a sequence carries some more holes whose cursors stand
in the code near above. Each lays out the rest of its line and its middle behind its cursor, and sees the stream up to
there. What it sees of the lines below begins some lines too late, as where the code between is not written yet; what
follows on its own line is exact.
"""

import random
from itertools import accumulate

import attrs
from tokenizers import Tokenizer

from engine.corpus.holes import closers_of, cut_within_line
from engine.models.embedded.layout import LineEncoder, SpecialTokens
from engine.models.embedded.token_healing import unfinished
from engine.models.stock.token_bytes import TokenBytes
from engine.training.config import Holes

_TAIL_TOKENS = 32
_TRIES = 40


@attrs.frozen
class Branch:
    """A hole behind the token `anchor` of the code near above. `tokens` begin with <tail>, <middle> is at `middle`.

    Tokens before `stop` are targets: <end> is none where the middle was too long.
    """

    anchor: int
    tokens: list[int]
    middle: int
    stop: int


class Brancher:
    """Draws branches."""

    def __init__(
        self, numbers: Holes, tokenizer: Tokenizer, special_tokens: SpecialTokens, encode: LineEncoder
    ) -> None:
        self._numbers, self._tokenizer, self._special_tokens = numbers, tokenizer, special_tokens
        self._encode, self._bytes = encode, TokenBytes(tokenizer).bytes
        self._kinds, self._odds = list(numbers.branch_weights), list(numbers.branch_weights.values())

    def draw(self, near: list[int], rng: random.Random) -> list[Branch]:
        """Return branches of the code near above, which has these tokens, as many as `branch_rows` have room for."""
        room = self._numbers.branch_rows
        ends = {end: index for index, end in enumerate(accumulate(len(self._bytes[token]) for token in near))}
        text = b"".join(self._bytes[token] for token in near).decode(errors="replace")
        branches: list[Branch] = []
        for _ in range(_TRIES if text else 0):
            if room < 8:
                break
            branch = self._branch(text, ends, rng)
            if branch is not None and len(branch.tokens) <= room:
                branches.append(branch)
                room -= len(branch.tokens)
        return branches

    def _branch(self, text: str, ends: dict[int, int], rng: random.Random) -> Branch | None:
        """Return one branch; None if the draw hit no hole, or one that does not begin behind a whole token.

        ends: the index of each token by how many bytes of the text end with it.
        """
        kind = rng.choices(self._kinds, self._odds)[0]
        span = cut_within_line(text, kind, rng)
        if span is None:
            return None
        start, end = span
        typed = unfinished(self._tokenizer, text[:start])
        anchor = ends.get(len(text[: start - len(typed)].encode()))
        if anchor is None:
            return None
        tail = text[end:].partition("\n")[0]
        if kind == "inside" and rng.random() < self._numbers.unfinished:
            tail = closers_of(tail)
        middle = self._encode(typed + text[start:end])
        kept = middle[: self._numbers.middle_tokens]
        special = self._special_tokens
        head = [special.tail, *self._encode(tail)[:_TAIL_TOKENS], special.middle]
        tokens = [*head, *kept, special.end]
        return Branch(anchor, tokens, len(head) - 1, len(tokens) - (len(kept) < len(middle)))
