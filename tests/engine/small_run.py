"""Shared by the tests of training: the frozen source files as a corpus, and the config of a tiny run."""

from pathlib import Path

import attrs
import torch
from sources import source_paths

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler, TrainingHole
from engine.models.embedded.network import Network
from engine.models.embedded.shape import Shape
from engine.training.config import Config, load_config

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "engine" / "training"
SHAPE = Shape(
    vocabulary=400, width=32, layers=2, heads=2, context_tokens=96, canvas_tokens=8, gram_buckets=64, gram_width=16
)


def source_files() -> list[corpus.File]:
    paths = source_paths()
    return [corpus.File(path.name, "python", path.read_text()) for path in paths]


def small_config() -> Config:
    full = load_config(TRAINING / "cpu.toml")
    return attrs.evolve(
        full,
        model=SHAPE,
        holes=attrs.evolve(full.holes, suffix_tokens=24, middle_tokens=16),
        objective=attrs.evolve(full.objective, canvas_rows_early=32, canvas_rows_late=32),
        optimizer=attrs.evolve(full.optimizer, batch=4, checkpoint_minutes=0.02),
    )


def drawn_holes(config: Config, count: int, seed: int = 0) -> list[TrainingHole]:
    sampler = HoleSampler(source_files(), config.corpus.shares, config.holes.weights, seed)
    return [sampler.draw() for _ in range(count)]


def drawn_network() -> Network:
    """Return a network of random weights, the same ones each time."""
    torch.manual_seed(0)
    network = Network(SHAPE)
    for matrix in network.parameters():
        torch.nn.init.normal_(matrix, std=0.2)
    return network
