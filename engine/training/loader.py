"""Where batches come from: holes of the corpus, laid out as the engine lays them out, with canvases after anchors."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler, TrainingHole, as_edited
from engine.models.embedded.layout import CompatibleTokens, Limits, LineEncoder, SpecialTokens, lay_out, unfinished
from engine.models.stock.token_bytes import TokenBytes, load_tokenizer
from engine.protocol.messages import Snippet
from engine.training.batch import Batch
from engine.training.config import Config
from engine.training.convert import SPECIALS
from engine.training.related import RelatedHoles

Numbers = NDArray[np.int64]
LINE_BYTES = 300_000_000
"""Memory for lines that were tokenized: most of a training sequence was seen before."""


@attrs.frozen
class Stream:
    """A hole's stream of T tokens. `weight` float32 [T] is above 0 for each target that counts. `anchors` are the
    positions that a canvas may follow outside the middle, `middle` is the first anchor's. `agreeing`: see Batch."""

    tokens: list[int]
    weight: NDArray[np.float32]
    anchors: slice
    middle: int
    agreeing: list[int]

    def __len__(self) -> int:
        return len(self.tokens)


class Collator:
    """Turns holes into batches."""

    def __init__(self, config: Config, tokenizer: Tokenizer, special_tokens: SpecialTokens, seed: int) -> None:
        self._config, self._special_tokens = config, special_tokens
        self.token_bytes = TokenBytes(tokenizer)
        self._tokenizer, self.encode = tokenizer, LineEncoder(tokenizer, self.token_bytes, LINE_BYTES)
        self._compatible = CompatibleTokens(self.token_bytes.bytes)
        self._rng, self._draws = random.Random(seed), np.random.default_rng(seed)
        self._vocabulary = tokenizer.get_vocab_size()

    def batch(self, streams: Sequence[Stream], rows: int) -> Batch:
        """Return streams, with `rows` canvas rows each, as a batch, on the CPU."""
        length = max(map(len, streams))
        count, whole = len(streams), length + rows
        tokens = np.full((count, whole), self._special_tokens.pad)
        positions = np.tile(np.arange(whole), (count, 1))
        targets = np.full((count, whole), self._special_tokens.pad)
        weights, masked = np.zeros((count, whole), np.float32), np.ones((count, rows), np.float32)
        owners, anchors = np.zeros((count, rows), np.int64), np.zeros((count, rows), np.int64)
        agreeing = np.zeros((count, self._vocabulary), bool)
        for row, stream in enumerate(streams):
            end = len(stream)
            tokens[row, :end], targets[row, : end - 1] = stream.tokens, stream.tokens[1:]
            weights[row, : end - 1] = stream.weight[1:]
            agreeing[row, stream.agreeing] = True
            if rows:
                own = row, slice(length, None)
                canvas = tokens[own], positions[own], targets[own], weights[own]
                self._write_canvases(stream, *canvas, owners[row], anchors[row], masked[row])
        middles = np.array([stream.middle for stream in streams])
        arrays = tokens, positions, targets, weights, owners, anchors, masked, middles, agreeing
        return Batch(*(torch.from_numpy(array) for array in arrays))

    def lay_out(self, hole: TrainingHole, most: int, snippets: Sequence[Snippet] = ()) -> Stream:
        """Return the stream of a hole, at most `most` tokens, after code of other files.

        Its middle starts with the typed end of the prefix (token healing).
        """
        rng, numbers = self._rng, self._config.holes
        typed = unfinished(self._tokenizer, hole.prefix)
        hole = as_edited(hole, rng, numbers.unfinished)
        whole = self.encode(typed + hole.middle)
        middle = whole[: numbers.middle_tokens]
        suffix = "" if rng.random() < numbers.no_suffix else hole.suffix
        path = "" if rng.random() < numbers.no_path else hole.path
        start = max(0, len(hole.prefix) - 6 * most)
        start = hole.prefix.find("\n", start) + 1 if start else 0
        above = hole.prefix[start : len(hole.prefix) - len(typed)]
        limits = self._limits(most - len(middle) - 2)
        if snippets:
            most_related = self._config.model.related_tokens
            limits = attrs.evolve(limits, related=rng.randint(most_related // 3, most_related))
        anchor = self._config.model.anchor
        laid = lay_out(self.encode, self._special_tokens, limits, above, suffix, path, list(snippets), anchor)
        tokens = [*laid.tokens, laid.anchor, *middle, self._special_tokens.end]
        weight = np.zeros(len(tokens), np.float32)
        weight[laid.near.start + 1 : laid.near.stop] = self._config.objective.above_weight
        weight[len(laid.tokens) + 1 :] = 1
        weight[-1] = self._config.objective.end_weight if len(middle) == len(whole) else 0
        agreeing = self._compatible.of(typed.encode()) if typed else []
        if middle and middle[0] not in agreeing:
            agreeing = []
        return Stream(tokens, weight, laid.near, len(laid.tokens), agreeing)

    def _limits(self, most: int) -> Limits:
        """Return limits of a stream; where near and far part is drawn, so that the engine may choose it."""
        rng = self._rng
        near = rng.randrange(32, 257)
        usual = Limits.of(most, min(self._config.holes.suffix_tokens, most // 4))
        # A short stream has as much of its line and of the lines below as a long one has: they are what is learned.
        near_cursor = attrs.evolve(usual, tail=min(32, most // 6), lines_below=min(64, most // 6))
        strides = rng.randrange(16, near), rng.randrange(1, 13)
        return attrs.evolve(near_cursor, near=near, near_stride=strides[0], line_stride=strides[1])

    def _write_canvases(
        self,
        stream: Stream,
        tokens: Numbers,
        positions: Numbers,
        targets: Numbers,
        weights: NDArray[np.float32],
        owners: Numbers,
        anchors: Numbers,
        masked: NDArray[np.float32],
    ) -> None:
        """Draw canvases until they fill all rows [R]; the last one may be cut short."""
        rows, draws, config = len(tokens), self._draws, self._config.objective
        lengths = [int(width) for width in config.canvas_lengths]
        odds = np.array(list(config.canvas_lengths.values()))
        widths = draws.choice(lengths, -(-rows // min(lengths)), p=odds / odds.sum())
        widths = widths[: int(np.searchsorted(np.cumsum(widths), rows)) + 1]
        widths[-1] -= widths.sum() - rows
        count, end = len(widths), len(stream)
        last = stream.anchors.stop - widths - 2
        inside = (last <= stream.anchors.start) | (draws.random(count) < config.hole_share)
        first = np.where(inside, stream.middle, stream.anchors.start)
        chosen = draws.integers(first, np.where(inside, end - 1, last))
        chosen[0] = stream.middle
        ratios = np.where(draws.random(count) < config.fully_masked, 1.0, draws.random(count)).astype(np.float32)
        owner = np.repeat(np.arange(count), widths)
        offset = np.arange(rows) - np.repeat(np.cumsum(widths) - widths, widths)
        anchor, ratio = chosen[owner], ratios[owner]
        text = np.concatenate((stream.tokens, np.full(max(lengths) + 2, self._special_tokens.end)))
        index = np.minimum(anchor + 1 + offset, end)
        hidden = (draws.random(rows) < ratio) | (offset == 0)
        is_target = np.append(hidden[1:], True) | (offset == widths[owner] - 1)
        tokens[:] = np.where(hidden, self._special_tokens.mask, text[index])
        targets[:] = text[index + 1]
        positions[:] = anchor + 1 + offset
        owners[:], anchors[:], masked[:] = owner, anchor, ratio
        weights[:] = np.where(anchor + 2 + offset < end, 1.0, config.padding_weight) * is_target


POOL = 64
"""Holes that are laid out before they are grouped by length."""


def special_tokens_of(tokenizer: Tokenizer) -> SpecialTokens:
    """Return the ids of the special tokens."""
    vocabulary = tokenizer.get_vocab()
    return SpecialTokens(*(vocabulary[name] for name in SPECIALS))


def batches(config: Config, work: Path, split: corpus.Split, seed: int) -> Iterator[Batch]:
    """Yield batches without end. `work` holds corpus/ and tokenizer.json."""
    tokenizer = load_tokenizer(work / "tokenizer.json")
    files = corpus.load(work / "corpus", split)
    sampler = HoleSampler(files, config.corpus.shares, config.holes.weights, seed)
    collator = Collator(config, tokenizer, special_tokens_of(tokenizer), seed)
    related = RelatedHoles(sampler, files, collator.encode, collator.token_bytes, seed)
    rng, lengths = random.Random(seed), config.holes.stream_tokens
    canvas, rows = config.objective.canvas_rows, config.optimizer.rows
    while True:
        # Sequences of about the same length together, so that little of a batch is padding.
        drawn = []
        for _ in range(POOL):
            most = int(rng.choices(list(lengths), list(lengths.values()))[0])
            hole, snippets = related.draw() if rng.random() < config.holes.related else (sampler.draw(), [])
            drawn.append(collator.lay_out(hole, most, snippets))
        drawn.sort(key=len)
        parts: list[list[Stream]] = []
        while drawn:
            count = max(1, rows // (len(drawn[-1]) + canvas))
            parts.append(drawn[-count:])
            del drawn[-count:]
        rng.shuffle(parts)
        for part in parts:
            yield collator.batch(part, canvas)
