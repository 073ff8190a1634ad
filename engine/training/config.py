"""The numbers of a training run, read from a TOML file that gives the reason for each."""

import tomllib
from pathlib import Path

import attrs
import cattrs

from engine.errors import MidspanError
from engine.models.embedded.shape import Shape


class ConfigError(MidspanError):
    """A training config that is missing, broken or has a wrong key."""

    code = "config"


@attrs.frozen
class Corpus:
    """The manifest's file name, and each language's share of the holes."""

    manifest: str
    shares: dict[str, float]


@attrs.frozen
class Holes:
    """Sizes in tokens; `weights` are the odds of each kind of hole, the other numbers are probabilities."""

    suffix_tokens: int
    middle_tokens: int
    weights: dict[str, float]
    no_suffix: float
    no_path: float
    unfinished: float


@attrs.frozen
class Objective:
    """Canvas rows of a sequence in the first and in the second part of the run, their lengths, and the loss weights.

    `canvas_lengths` are the odds of each length in tokens. `distilled` applies in the second part; see
    objective.losses. `memory_share` is the share of the sequences whose loss counts what the memory of their package
    knows; see memory_odds.py. `middle_weight` is the weight of the stream's rows in the hole; the others weigh 1.
    """

    canvas_rows_early: int
    canvas_rows_late: int
    late_from: float
    canvas_lengths: dict[str, float]
    hole_share: float
    fully_masked: float
    canvas_weight: float
    distilled: float
    padding_weight: float
    memory_share: float = 0.0
    middle_weight: float = 1.0


@attrs.frozen
class Optimizer:
    """Batch size in sequences, peak learning rates, and the schedule in shares of the run."""

    batch: int
    muon_lr: float
    embed_lr: float
    head_lr: float
    warmup: float
    cooldown: float
    weight_decay: float
    checkpoint_minutes: float
    int8: bool
    link_lr: float = 0.002
    seed: int = 0


@attrs.frozen
class Config:
    """All numbers of a run."""

    name: str
    model: Shape
    corpus: Corpus
    holes: Holes
    objective: Objective
    optimizer: Optimizer


def load_config(path: Path) -> Config:
    """Read and check a config file. Raises ConfigError with a message of one line."""
    try:
        fields = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"no such training config: {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    try:
        return cattrs.Converter(forbid_extra_keys=True, detailed_validation=False).structure(fields, Config)
    except Exception as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from None
