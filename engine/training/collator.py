"""Lays out holes as batches, fast enough for a GPU: every line is tokenized only once."""

import random
from collections.abc import Sequence
from itertools import zip_longest

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.corpus.holes import TrainingHole, as_edited
from engine.models.embedded.layout import Limits, SpecialTokens, lay_out
from engine.models.embedded.ngram_lookup import Hints
from engine.models.embedded.token_healing import CompatibleTokens, unfinished
from engine.models.stock.token_bytes import TokenBytes
from engine.training import packed_batch
from engine.training.batch import Batch
from engine.training.batch_lookup import BatchLookup
from engine.training.begun import words
from engine.training.config import Config
from engine.training.line_encoder import LineEncoder
from engine.training.memory_odds import MemoryOdds
from engine.training.workspace_holes import Workspace


@attrs.frozen
class _Stream:
    """A hole's stream of T tokens, cut at the file's edges to fit the context.

    `weight` float32 [T] is above 0 for each fair target and 0 for the others. `prefix` is the span of the
    prefix, `middle` the index of <middle>. `remembered` float32 [T]: see MemoryOdds.of, for each token as a target.
    """

    tokens: list[int]
    weight: NDArray[np.float32]
    prefix: slice
    middle: int
    remembered: NDArray[np.float32]


class Collator:
    """Turns holes into batches; it draws and looks up all canvases of a sequence at once."""

    def __init__(
        self,
        config: Config,
        tokenizer: Tokenizer,
        special_tokens: SpecialTokens,
        seed: int,
        memory: MemoryOdds | None = None,
    ) -> None:
        self._memory = memory
        self._holes, self._objective, self._special_tokens = config.holes, config.objective, special_tokens
        self._tokenizer, self.encode = tokenizer, LineEncoder(tokenizer)
        self._compatible = CompatibleTokens(TokenBytes(tokenizer).bytes)
        self._rng, self._draws = random.Random(seed), np.random.default_rng(seed)
        self._length, self._buckets = config.model.context_tokens, config.model.gram_buckets
        self._shape = config.model
        lengths = config.objective.canvas_lengths
        self._lengths = [int(length) for length in lengths]
        self._shares = np.array(list(lengths.values())) / sum(lengths.values())

    def batch(self, holes: list[TrainingHole], rows: int) -> Batch:
        """Lay out holes with `rows` canvas rows each, as a batch on the CPU."""
        return packed_batch.unpack(torch.from_numpy(self.pack(holes, rows)), self._shape, torch.device("cpu"))

    def pack(
        self, holes: list[TrainingHole], rows: int, workspaces: Sequence[Workspace | None] = ()
    ) -> packed_batch.PackedBatch:
        """Lay out holes with `rows` canvas rows each, as one array. workspaces: of each hole, for the memory."""
        packed = packed_batch.blank(len(holes), self._length, rows, self._special_tokens)
        for row, (hole, workspace) in enumerate(zip_longest(holes, workspaces)):
            typed = unfinished(self._tokenizer, hole.prefix)
            stream = self._lay_out(hole, typed, workspace)
            lookup = BatchLookup(stream.tokens, self._special_tokens, self._buckets)
            if typed:
                agreeing = self._compatible.of(typed.encode())
                lookup.narrow(stream.middle, np.array(agreeing))
                if stream.tokens[stream.middle + 1] in agreeing:
                    bits = words(agreeing, self._tokenizer.get_vocab_size())
                    packed[packed_batch.OWNERS, row, : len(bits)] = bits
            _write_stream(packed[:, row], stream, lookup)
            self._write_canvases(packed[:, row, self._length :], stream, lookup)
        return packed

    def _lay_out(self, hole: TrainingHole, typed: str, workspace: Workspace | None) -> _Stream:
        """Return the stream of a hole, whose middle starts with the `typed` end of the prefix (token healing)."""
        rng, limits = self._rng, self._holes
        hole = as_edited(hole, rng, limits.unfinished)
        middle = self.encode(typed + hole.middle)[: limits.middle_tokens]
        suffix = "" if rng.random() < limits.no_suffix else hole.suffix
        path = "" if rng.random() < limits.no_path else hole.path
        start = max(0, len(hole.prefix) - 6 * self._length)
        start = hole.prefix.find("\n", start) + 1 if start else 0
        above = hole.prefix[start : len(hole.prefix) - len(typed)]
        room = Limits(self._length - len(middle) - 2, below=limits.suffix_tokens, tail=32)
        laid = lay_out(self.encode, self._special_tokens, room, above, suffix, path, [])
        tokens = [*laid.tokens, self._special_tokens.middle, *middle, self._special_tokens.end]
        weight = np.zeros(len(tokens), np.float32)
        weight[laid.below.start + 1 : laid.below.stop] = 1
        weight[laid.prefix.start + 1 : laid.prefix.stop] = 1
        weight[len(laid.tokens) + 1 :] = self._objective.middle_weight
        remembered = np.zeros(len(tokens), np.float32)
        if self._memory is not None and workspace is not None:
            known = len(laid.all_above) - (laid.prefix.stop - laid.prefix.start)
            odds = self._memory.of(
                workspace, laid.all_above, self.encode(suffix), known, [*laid.all_above[known:], *middle]
            )
            remembered[laid.prefix] = odds[: len(laid.all_above) - known]
            remembered[len(laid.tokens) + 1 : -1] = odds[len(laid.all_above) - known :]
        return _Stream(tokens, weight, laid.prefix, len(laid.tokens), remembered * (weight > 0))

    def _write_canvases(self, packed: packed_batch.PackedBatch, stream: _Stream, lookup: BatchLookup) -> None:
        """Draw canvases until they fill all rows of `packed` [11, R]; the last one may be cut short."""
        rows, draws, config = packed.shape[1], self._draws, self._objective
        prefix, length = stream.prefix, len(stream.tokens)
        widths = draws.choice(self._lengths, -(-rows // min(self._lengths)), p=self._shares)
        widths = widths[: int(np.searchsorted(np.cumsum(widths), rows)) + 1]
        widths[-1] -= widths.sum() - rows
        count = len(widths)
        last = prefix.stop - widths - 2
        inside = (last <= prefix.start) | (draws.random(count) < config.hole_share)
        anchors = draws.integers(np.where(inside, stream.middle, prefix.start), np.where(inside, length - 1, last))
        anchors[0] = stream.middle
        ratios = np.where(draws.random(count) < config.fully_masked, 1.0, draws.random(count)).astype(np.float32)

        owner = np.repeat(np.arange(count), widths)
        offset = np.arange(rows) - np.repeat(np.cumsum(widths) - widths, widths)
        anchor, ratio = anchors[owner], ratios[owner]
        tokens = np.concatenate((stream.tokens, np.full(max(self._lengths) + 2, self._special_tokens.end)))
        index = np.minimum(anchor + 1 + offset, length)
        hidden = (draws.random(rows) < ratio) | (offset == 0)
        is_target = np.append(hidden[1:], True) | (offset == widths[owner] - 1)
        shown = np.where(hidden, self._special_tokens.mask, tokens[index])
        packed[packed_batch.TOKENS], packed[packed_batch.TARGETS] = shown, tokens[index + 1]
        packed[packed_batch.POSITIONS] = anchor + 1 + offset
        packed[packed_batch.OWNERS], packed[packed_batch.ANCHORS] = owner, anchor
        weight = np.where(anchor + 2 + offset < length, 1.0, config.padding_weight)
        packed_batch.floats(packed, packed_batch.WEIGHTS)[:] = weight * is_target
        packed_batch.floats(packed, packed_batch.MASKED)[:] = ratio
        _write_hints(packed, lookup.canvases(anchor, offset, shown))


def _write_stream(packed: packed_batch.PackedBatch, stream: _Stream, lookup: BatchLookup) -> None:
    end = len(stream.tokens)
    packed[packed_batch.TOKENS, :end] = stream.tokens
    packed[packed_batch.TARGETS, : end - 1] = stream.tokens[1:]
    packed_batch.floats(packed, packed_batch.WEIGHTS)[: end - 1] = stream.weight[1:]
    packed_batch.floats(packed, packed_batch.REMEMBERED)[: end - 1] = stream.remembered[1:]
    _write_hints(packed[:, :end], lookup.stream())


def _write_hints(packed: packed_batch.PackedBatch, hints: Hints) -> None:
    packed[packed_batch.HINTS], packed[packed_batch.STRENGTHS] = hints.tokens, hints.strengths
    packed[packed_batch.GRAMS : packed_batch.GRAMS + 2] = hints.grams.T
