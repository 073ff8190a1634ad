"""Exports a checkpoint as a model's folder: safetensors in int4, tokenizer and config."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.models.embedded.card import FAMILY, Card, config_of
from engine.models.embedded.network import Network
from engine.models.embedded.weights import SCALE, quantize_int4, quantize_int8
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.checkpoint import NEWEST, load_network
from engine.training.config import Config
from engine.training.loader import special_tokens_of


def export(config: Config, network: Network, tokenizer_path: Path, folder: Path) -> None:
    """Write a folder that the engine can load: the blocks' matrices in int4, the embedding in int8."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, weight in network.state_dict().items():
        dense = weight.float().cpu().numpy()
        if dense.ndim == 1:
            stored[name] = dense
            continue
        stored[name], stored[name + SCALE] = (quantize_int8 if name == "embed.weight" else quantize_int4)(dense)
    save_file(stored, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    card = Card(
        family=FAMILY,
        name=config.name,
        licence="Apache-2.0",
        shape=network.shape,
        marks=special_tokens_of(load_tokenizer(tokenizer_path)),
        below_tokens=config.holes.suffix_tokens,
    )
    (folder / "config.json").write_text(config_of(card))


def export_checkpoint(config: Config, work: Path, folder: Path, checkpoint: Path | None = None) -> None:
    """Export a checkpoint of a run, by default the newest."""
    export(config, load_network(checkpoint or work / NEWEST), work / "tokenizer.json", folder)
