"""DreamOn's way to find the length of a middle: masks that multiply and vanish."""

from engine.models.stock.family import MaskedTokens

START = 8
"""Masks at first. Half of all fills of one line have at most 7 tokens."""


class Expansion:
    """Grows and shrinks one middle.

    A committed <expand> makes two masks of one. A committed end-of-text token deletes its position and all masks after
    it: the middle needs no more tokens there (pad_eos_to_right of DreamOn's released evaluation). A middle never gets
    longer than `longest`, and expands at most as often. So a fill ends even if it expands and deletes in turn.
    """

    def __init__(self, special: MaskedTokens, longest: int) -> None:
        self._special, self._longest, self._expansions = special, longest, longest

    def room(self, length: int) -> int:
        """Return by how many masks a middle of `length` tokens may grow."""
        return min(self._expansions, self._longest - length)

    def apply(
        self, tokens: list[int | None], confidence: list[float], committed: dict[int, tuple[int, float]]
    ) -> tuple[list[int | None], list[float]]:
        """Return the middle's tokens, None where masked, and their confidences once `committed` is.

        committed: by position, a token and its confidence.
        """
        room = self.room(len(tokens))
        grown: list[int | None] = []
        grown_confidence: list[float] = []
        deleted = False
        for position, known in enumerate(zip(tokens, confidence, strict=True)):
            token, confident = committed.get(position, known)
            if token == self._special.end or (token is None and deleted):
                deleted = True
                continue
            if token == self._special.expand and room > 0:
                room -= 1
                self._expansions -= 1
                grown.append(None)
                grown_confidence.append(0.0)
            grown.append(None if token == self._special.expand else token)
            grown_confidence.append(confident)
        return grown, grown_confidence
