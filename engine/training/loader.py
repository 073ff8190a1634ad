"""The data loader: processes that draw holes and lay out batches, so that the model never waits for one."""

import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler
from engine.models.embedded.layout import SpecialTokens
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import packed_batch as wire
from engine.training.collator import Collator
from engine.training.config import Config
from engine.training.objective import Batch
from engine.training.tokenizer import SPECIALS

AHEAD = 3
"""Batches that each process keeps ready."""


def marks_of(tokenizer: Tokenizer) -> SpecialTokens:
    """Return the ids of the special tokens."""
    vocabulary = tokenizer.get_vocab()
    return SpecialTokens(*(vocabulary[name] for name in SPECIALS))


@attrs.frozen
class Source:
    """Where batches come from: `work` holds corpus/ and tokenizer.json."""

    config: Config
    work: Path

    def held_out(self, count: int, rows: int, device: torch.device) -> list[Batch]:
        """Return the first held-out batches, always the same ones."""
        found = zip(range(count), HoleBatches(self, "held-out", 7, rows), strict=False)
        return [self.unfold(batch, device) for _, batch in found]

    def batches(self, seed: int, rows: int, workers: int, device: torch.device) -> Iterator[Tensor]:
        """Return training batches for ever, on their wire, pinned for the copy to a GPU."""
        loader = DataLoader(
            HoleBatches(self, "train", seed, rows),
            batch_size=None,
            num_workers=workers,
            prefetch_factor=AHEAD if workers else None,
            pin_memory=device.type == "cuda",
        )
        return iter(loader)

    def unfold(self, batch: Tensor, device: torch.device) -> Batch:
        return wire.unfold(batch, self.config.model.context_tokens, device)


class HoleBatches(IterableDataset[Tensor]):
    """An endless stream of batches (see wire.Wire), each worker's its own."""

    def __init__(self, source: Source, split: corpus.Split, seed: int, rows: int) -> None:
        self._source, self._split, self._seed, self._rows = source, split, seed, rows

    def __iter__(self) -> Iterator[Tensor]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        info = torch.utils.data.get_worker_info()
        seed = self._seed * 1009 + (info.id if info else 0)
        config, tokenizer = self._source.config, load_tokenizer(self._source.work / "tokenizer.json")
        files = corpus.load(self._source.work / "corpus", self._split)
        sampler = HoleSampler(files, config.corpus.shares, config.holes.weights, seed)
        collator = Collator(config, tokenizer, marks_of(tokenizer), seed)
        while True:
            holes = [sampler.draw() for _ in range(config.optimizer.batch)]
            yield torch.from_numpy(collator.packed(holes, self._rows))
