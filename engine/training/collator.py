"""Holes to batches, fast enough for a GPU: every line is tokenized once."""

import random

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.corpus.holes import TrainingHole, as_edited
from engine.models.embedded.layout import Limits, SpecialTokens, lay_out
from engine.models.embedded.ngram_lookup import Hints
from engine.models.embedded.token_healing import Agreement, unfinished
from engine.models.stock.token_bytes import TokenBytes
from engine.training import objective
from engine.training import packed_batch as wire
from engine.training.config import Config
from engine.training.repeats import BatchLookup

LINES = 1_500_000
"""Lines that are remembered; some 300 MB."""


class LineEncoder:
    """Tokenizes text line by line, as the engine does: no token reaches over a line's start, so that is exact.

    The lines of a text that are not known yet are tokenized in one go and taken apart at the tokens with a newline.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer, pieces = tokenizer, TokenBytes(tokenizer)
        self._breaks = np.array([pieces.breaks_line(token) for token in range(tokenizer.get_vocab_size())])
        self._known: dict[str, bytes] = {}

    def __call__(self, text: str) -> list[int]:
        if "\r" in text:  # it may stand in one token with the newline
            return self._plain(text)
        first, *others = text.split("\n")
        lines = [first, *["\n" + other for other in others]]
        known = self._known
        missing = list(dict.fromkeys(line for line in lines if line not in known and line))
        if missing:
            if len(known) + len(missing) > LINES:
                known.clear()
                missing = list(dict.fromkeys(line for line in lines if line))
            self._learn(missing)
        found: list[int] = np.frombuffer(b"".join([known[line] for line in lines if line]), np.uint16).tolist()
        return found

    def _learn(self, lines: list[str]) -> None:
        """Tokenize lines; only the first may be without a newline before it, and needs none."""
        ids = np.array(self._plain("".join(lines)), np.uint16)
        starts = np.flatnonzero(self._breaks[ids])
        if not lines[0].startswith("\n"):
            starts = np.concatenate(([0], starts))
        for line, part in zip(lines, np.split(ids, starts[1:]), strict=True):
            self._known[line] = part.tobytes()

    def _plain(self, text: str) -> list[int]:
        # Without the tokens' places in the text, which encode() works out, this takes half the time.
        ids: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids


class Collator:
    """Turns holes into batches; draws and looks up all canvases of a sequence at once."""

    def __init__(self, config: Config, tokenizer: Tokenizer, marks: SpecialTokens, seed: int) -> None:
        self._holes, self._objective, self._marks = config.holes, config.objective, marks
        self._tokenizer, self._encode = tokenizer, LineEncoder(tokenizer)
        self._agreement = Agreement(TokenBytes(tokenizer).bytes)
        self._rng, self._draws = random.Random(seed), np.random.default_rng(seed)
        self._length, self._buckets = config.model.context_tokens, config.model.gram_buckets
        lengths = config.objective.canvas_lengths
        self._lengths = [int(length) for length in lengths]
        self._shares = np.array(list(lengths.values())) / sum(lengths.values())

    def batch(self, holes: list[TrainingHole], rows: int) -> objective.Batch:
        return wire.unfold(torch.from_numpy(self.packed(holes, rows)), self._length, torch.device("cpu"))

    def packed(self, holes: list[TrainingHole], rows: int) -> wire.Wire:
        """Lay out holes with `rows` canvas rows each."""
        made = wire.blank(len(holes), self._length, rows, self._marks)
        for row, hole in enumerate(holes):
            typed = unfinished(self._tokenizer, hole.prefix)
            laid = self._lay_out(hole, typed)
            lookup = BatchLookup(laid[0], self._marks, self._buckets)
            if typed:
                lookup.narrow(laid[3], np.array(self._agreement.tokens(typed.encode())))
            self._stream(made[:, row], laid[0], laid[1], lookup)
            self._canvases(made[:, row, self._length :], laid[0], laid[2], laid[3], lookup)
        return made

    def _lay_out(self, hole: TrainingHole, typed: str) -> tuple[list[int], NDArray[np.float32], slice, int]:
        """Return stream tokens, 1 for each that is a fair target, where the prefix stands, and where <middle> does."""
        rng, limits = self._rng, self._holes
        hole = as_edited(hole, rng, limits.unfinished)
        middle = self._encode(typed + hole.middle)[: limits.middle_tokens]
        suffix = "" if rng.random() < limits.no_suffix else hole.suffix
        path = "" if rng.random() < limits.no_path else hole.path
        start = max(0, len(hole.prefix) - 6 * self._length)
        start = hole.prefix.find("\n", start) + 1 if start else 0
        above = hole.prefix[start : len(hole.prefix) - len(typed)]
        room = Limits(self._length - len(middle) - 2, below=limits.suffix_tokens, tail=32)
        laid = lay_out(self._encode, self._marks, room, above, suffix, path, [])
        tokens = [*laid.tokens, self._marks.middle, *middle, self._marks.end]
        counted = np.zeros(len(tokens), np.float32)
        counted[laid.below.start + 1 : laid.below.stop] = 1
        counted[laid.prefix.start + 1 : laid.prefix.stop] = 1
        counted[len(laid.tokens) + 1 :] = 1
        return tokens, counted, laid.prefix, len(laid.tokens)

    def _stream(self, made: wire.Wire, stream: list[int], counted: NDArray[np.float32], lookup: BatchLookup) -> None:
        end = len(stream)
        made[wire.TOKENS, :end] = stream
        made[wire.TARGETS, : end - 1] = stream[1:]
        wire.floats(made, wire.WEIGHTS)[: end - 1] = counted[1:]
        _hint(made[:, :end], lookup.stream())

    def _canvases(self, made: wire.Wire, stream: list[int], prefix: slice, middle_at: int, lookup: BatchLookup) -> None:
        """Draw canvases until they fill all rows of `made` [11, R]; the last one may be cut short."""
        rows, draws, wanted = made.shape[1], self._draws, self._objective
        widths = draws.choice(self._lengths, -(-rows // min(self._lengths)), p=self._shares)
        widths = widths[: int(np.searchsorted(np.cumsum(widths), rows)) + 1]
        widths[-1] -= widths.sum() - rows
        count = len(widths)
        last = prefix.stop - widths - 2
        inside = (last <= prefix.start) | (draws.random(count) < wanted.hole_share)
        anchors = draws.integers(np.where(inside, middle_at, prefix.start), np.where(inside, len(stream) - 1, last))
        anchors[0] = middle_at
        ratios = np.where(draws.random(count) < wanted.fully_masked, 1.0, draws.random(count)).astype(np.float32)

        owner = np.repeat(np.arange(count), widths)
        offset = np.arange(rows) - np.repeat(np.cumsum(widths) - widths, widths)
        anchor, ratio = anchors[owner], ratios[owner]
        text = np.concatenate((stream, np.full(max(self._lengths) + 2, self._marks.end)))
        place = np.minimum(anchor + 1 + offset, len(stream))
        hidden = (draws.random(rows) < ratio) | (offset == 0)
        asked = np.append(hidden[1:], True) | (offset == widths[owner] - 1)
        shown = np.where(hidden, self._marks.mask, text[place])
        made[wire.TOKENS], made[wire.TARGETS] = shown, text[place + 1]
        made[wire.POSITIONS] = anchor + 1 + offset
        made[wire.OWNERS], made[wire.ANCHORS] = owner, anchor
        worth = np.where(anchor + 2 + offset < len(stream), 1.0, wanted.padding_weight)
        wire.floats(made, wire.WEIGHTS)[:] = worth * asked
        wire.floats(made, wire.MASKED)[:] = ratio
        _hint(made, lookup.canvases(anchor, offset, shown))


def _hint(made: wire.Wire, hints: Hints) -> None:
    made[wire.HINTS], made[wire.STRENGTHS] = hints.tokens, hints.strengths
    made[wire.GRAMS : wire.GRAMS + 2] = hints.grams.T
