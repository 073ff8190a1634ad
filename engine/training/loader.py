"""The data loader: worker processes draw holes and lay out batches, so that the model never waits for one."""

import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler, TrainingHole
from engine.models.embedded.layout import SpecialTokens
from engine.models.stock.token_bytes import load_tokenizer
from engine.training import packed_batch
from engine.training.batch import Batch
from engine.training.collator import Collator
from engine.training.config import Config
from engine.training.memory_odds import BLIND_GATE, MemoryOdds
from engine.training.tokenizer import SPECIALS
from engine.training.workspace_holes import Workspace, WorkspaceHoles

AHEAD = 3
"""Batches that each worker keeps ready."""


def special_tokens_of(tokenizer: Tokenizer) -> SpecialTokens:
    """Return the ids of the special tokens."""
    vocabulary = tokenizer.get_vocab()
    return SpecialTokens(*(vocabulary[name] for name in SPECIALS))


@attrs.frozen
class Source:
    """The source of batches: `work` holds corpus/ and tokenizer.json."""

    config: Config
    work: Path

    def held_out(self, count: int, rows: int, device: torch.device) -> list[Batch]:
        """Return the first `count` held-out batches, always the same ones."""
        numbered = zip(range(count), HoleBatches(self, "held-out", 7, rows), strict=False)
        return [self.unpack(batch, device) for _, batch in numbered]

    def batches(self, seed: int, rows: int, workers: int, device: torch.device) -> Iterator[Tensor]:
        """Return training batches without end, packed (packed_batch.py) and pinned for the copy to a GPU."""
        loader = DataLoader(
            HoleBatches(self, "train", seed, rows),
            batch_size=None,
            num_workers=workers,
            prefetch_factor=AHEAD if workers else None,
            pin_memory=device.type == "cuda",
        )
        return iter(loader)

    def unpack(self, batch: Tensor, device: torch.device) -> Batch:
        """Return a packed batch on `device`."""
        return packed_batch.unpack(batch, self.config.model, device)


class HoleBatches(IterableDataset[Tensor]):
    """An endless stream of packed batches (packed_batch.PackedBatch), different in each worker."""

    def __init__(self, source: Source, split: corpus.Split, seed: int, rows: int) -> None:
        self._source, self._split, self._seed, self._rows = source, split, seed, rows

    def __iter__(self) -> Iterator[Tensor]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        info = torch.utils.data.get_worker_info()
        seed = self._seed * 1009 + (info.id if info else 0)
        config, tokenizer = self._source.config, load_tokenizer(self._source.work / "tokenizer.json")
        files = corpus.load(self._source.work / "corpus", self._split)
        sampler = HoleSampler(files, config.corpus.shares, config.holes.weights, seed)
        share = config.objective.memory_share if self._split == "train" else 0.0
        memory = MemoryOdds(self._source.work / BLIND_GATE) if share else None
        collator = Collator(config, tokenizer, special_tokens_of(tokenizer), seed, memory)
        with_memory = round(share * config.optimizer.batch)
        known: list[tuple[TrainingHole, Workspace]] = []
        if with_memory:
            in_workspaces = WorkspaceHoles(files, config.corpus.shares, config.holes.weights, collator.encode, seed)
        while True:
            if with_memory:
                known = [in_workspaces.draw() for _ in range(with_memory)]
            holes = [hole for hole, _ in known]
            holes += [sampler.draw() for _ in range(config.optimizer.batch - with_memory)]
            yield torch.from_numpy(collator.pack(holes, self._rows, [workspace for _, workspace in known]))
