"""Exports a checkpoint as a model's folder: safetensors in 4 bits, tokenizer and config."""

import json
from pathlib import Path

import cattrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine.models.embedded.model import FAMILY, Card, config_of
from engine.models.embedded.network import Network
from engine.models.embedded.weights import CENTRE, SCALE, STEPS, in_steps, packed_pairs, quantize_int8
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.card import ORIGIN
from engine.training.checkpoint import NEWEST, load_network
from engine.training.config import Config
from engine.training.loader import special_tokens_of
from engine.training.rounded import round_linears, rounded_linears

LICENCE = "Apache-2.0"
"""The licence of the default parent and of what is made of it."""


def card_of(folder: Path) -> Card | None:
    """Return the card of a model that `export` wrote, or None for anything else."""
    try:
        config = json.loads((folder / "config.json").read_text())
        return (
            cattrs.Converter(detailed_validation=False).structure(config, Card) if config["family"] == FAMILY else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def export(config: Config, network: Network, tokenizer_path: Path, folder: Path, licence: str = LICENCE) -> None:
    """Write a folder that the engine can load: the blocks' matrices in 4 bits, the embedding in int8.

    The network's matrices are rounded to the nearest, in place, unless they are rounded already.
    """
    round_linears(network)
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, linear in rounded_linears(network).items():
        scale, centre = (each.detach().float().cpu().numpy() for each in (linear.scale, linear.centre))
        stored[name] = packed_pairs(linear.numbers.detach().round().cpu().numpy().astype(np.uint8))
        stored[name + SCALE], stored[name + CENTRE], stored[name + STEPS] = in_steps(scale, centre)
    for name, weight in network.state_dict().items():
        if weight.dim() == 1:
            stored[name] = weight.float().cpu().numpy()
    stored["embed.weight"], stored["embed.weight" + SCALE] = quantize_int8(network.embed.weight.detach().cpu().numpy())
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


def export_checkpoint(config: Config, work: Path, folder: Path, checkpoint: Path | None = None) -> None:
    """Export a checkpoint of a run, by default the newest."""
    # Another parent's licence is not ours to state: its own card has it.
    licence = "as its parent's" if (work / ORIGIN).exists() else LICENCE
    export(config, load_network(checkpoint or work / NEWEST), work / "tokenizer.json", folder, licence)
