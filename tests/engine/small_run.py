"""Shared by the tests of training: the frozen source files as a corpus, and the config of a tiny run."""

from pathlib import Path

import attrs
import torch
from support.sources import source_paths
from support.tiny_models import TINY, randomize
from tokenizers import Tokenizer

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler, TrainingHole
from engine.models.embedded.network import Network
from engine.training.batch import Batch
from engine.training.config import Config, load_config
from engine.training.loader import Collator, special_tokens_of

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "engine" / "training"
LENGTH = 96
"""Tokens of a sequence."""
RELATED = 192
"""Tokens of other files' code before it, at most."""
SHAPE = attrs.evolve(TINY, context_tokens=LENGTH + RELATED)


def source_files() -> list[corpus.File]:
    paths = source_paths()
    return [corpus.File(path.stem, "python", path.read_text()) for path in paths]


def small_config() -> Config:
    full = load_config(TRAINING / "cpu.toml")
    return attrs.evolve(
        full,
        model=attrs.evolve(full.model, vocabulary=SHAPE.vocabulary, related_tokens=RELATED),
        holes=attrs.evolve(full.holes, suffix_tokens=24, middle_tokens=16, stream_tokens={str(LENGTH): 1.0}),
        objective=attrs.evolve(full.objective, canvas_rows=32),
        optimizer=attrs.evolve(full.optimizer, rows=512, batches=1, rate=2e-3, checkpoint_minutes=0.02),
        rounding=attrs.evolve(full.rounding, batches=4, minutes=0.05),
    )


def drawn_holes(config: Config, count: int, seed: int = 0) -> list[TrainingHole]:
    sampler = HoleSampler(source_files(), config.corpus.shares, config.holes.weights, seed)
    return [sampler.draw() for _ in range(count)]


def drawn_batch(tokenizer: Tokenizer, count: int, rows: int = 32, seed: int = 0) -> Batch:
    """Lay out holes of the frozen sources as a batch."""
    config = small_config()
    collator = Collator(config, tokenizer, special_tokens_of(tokenizer), seed)
    return collator.batch([collator.lay_out(hole, LENGTH) for hole in drawn_holes(config, count)], rows)


def drawn_network() -> Network:
    """Return a network of random weights, the same ones each time."""
    torch.manual_seed(0)
    network = Network(SHAPE)
    randomize(network, 0.2)
    return network
