"""The numbers of a training run, read from a TOML file that gives the reason for each."""

import tomllib
from pathlib import Path

import attrs
import cattrs

from engine.errors import MidspanError
from engine.models.embedded.layout import Anchor


class ConfigError(MidspanError):
    """A training config that is missing, broken or has a wrong key."""

    code = "config"


@attrs.frozen
class Model:
    """How many of the parent's tokens are kept, and the model's sizes in tokens. The parent gives the rest.

    related_tokens: of the context, those for related code. anchor: what comes before the middle at the end of a line.
    """

    vocabulary: int
    context_tokens: int
    related_tokens: int
    canvas_tokens: int
    anchor: Anchor


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
    stream_tokens: dict[str, float]
    weights: dict[str, float]
    no_suffix: float
    no_path: float
    unfinished: float
    related: float


@attrs.frozen
class Objective:
    """Canvas rows of a sequence, their lengths, and the loss weights.

    `canvas_lengths` are the odds of each length in tokens. `distilled`: see objective.losses. A row of the middle
    weighs 1, that of its <end> `end_weight`, one of the code above `above_weight`. `late_from`: canvases count in full
    from this share of the run on.
    """

    canvas_rows: int
    canvas_lengths: dict[str, float]
    late_from: float
    hole_share: float
    fully_masked: float
    canvas_weight: float
    distilled: float
    padding_weight: float
    above_weight: float
    end_weight: float


@attrs.frozen
class Optimizer:
    """Rows of a batch, canvases included, batches of a step, peak rate, and the schedule in shares of the run."""

    rows: int
    batches: int
    rate: float
    warmup: float
    cooldown: float
    weight_decay: float
    checkpoint_minutes: float
    seed: int = 0


@attrs.frozen
class Rounding:
    """How a trained network gets its 4-bit numbers (rounding.py).

    `batches` are read to round it. Then what is not rounded is tuned for `minutes`, in steps of `step_batches`. `rate`
    is a share of each tensor's mean size.
    """

    batches: int
    minutes: float
    step_batches: int
    rate: float


@attrs.frozen
class Config:
    """All numbers of a run."""

    name: str
    model: Model
    corpus: Corpus
    holes: Holes
    objective: Objective
    optimizer: Optimizer
    rounding: Rounding


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
