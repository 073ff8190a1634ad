"""Exports a checkpoint as a model's folder: safetensors in int4, tokenizer and config."""

import copy
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.models.embedded.model import FAMILY, Card, config_of
from engine.models.embedded.network import Network
from engine.models.embedded.weights import SCALE, quantize_int4, quantize_int8
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.calibrated import Matrices, round_to_int4
from engine.training.card import ORIGIN
from engine.training.checkpoint import NEWEST, load_network
from engine.training.config import Config
from engine.training.loader import batches, special_tokens_of
from engine.training.tuned import tune

CALIBRATION = 14
"""Batches of the corpus by which matrices are rounded: some 20,000 rows."""


def export(
    config: Config,
    network: Network,
    tokenizer_path: Path,
    folder: Path,
    matrices: Matrices | None = None,
    licence: str = "Apache-2.0",
) -> None:
    """Write a folder that the engine can load: the blocks' matrices in int4, the embedding in int8.

    matrices: those that are rounded already; the others are rounded to the nearest.
    """
    matrices = matrices or {}
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, weight in network.state_dict().items():
        dense = weight.float().cpu().numpy()
        if dense.ndim == 1:
            stored[name] = dense
            continue
        quantize = quantize_int8 if name == "embed.weight" else quantize_int4
        stored[name], stored[name + SCALE] = matrices[name] if name in matrices else quantize(dense)
    save_file(stored, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    card = Card(
        family=FAMILY,
        name=config.name,
        licence=licence,
        shape=network.shape,
        marks=special_tokens_of(load_tokenizer(tokenizer_path)),
        below_tokens=config.holes.suffix_tokens,
    )
    (folder / "config.json").write_text(config_of(card))


def export_checkpoint(
    config: Config, work: Path, folder: Path, checkpoint: Path | None = None, tuned_steps: int | None = None
) -> None:
    """Export a checkpoint of a run, by default the newest; rounded by the corpus of the run, if that is there.

    tuned_steps: of the training of scales and gains after the rounding; by default what the config says.
    """
    network, tokenizer = load_network(checkpoint or work / NEWEST), work / "tokenizer.json"
    matrices: Matrices = {}
    if (work / "corpus" / "train.msgpack").exists():
        drawn = batches(config, work, "train", config.optimizer.seed)
        exact = copy.deepcopy(network)
        pad = special_tokens_of(load_tokenizer(tokenizer)).pad
        matrices = round_to_int4(network, list(islice(drawn, CALIBRATION)), pad)
        steps = config.optimizer.tuned_steps if tuned_steps is None else tuned_steps
        matrices = tune(network, matrices, exact, drawn, steps, config.optimizer.tuned_rate)
    # Another parent's licence is not ours to state: its own card has it.
    licence = "as its parent's" if (work / ORIGIN).exists() else "Apache-2.0"
    export(config, network, tokenizer, folder, matrices, licence)
