"""Exports a checkpoint as a model's folder: safetensors, tokenizer and config."""

from pathlib import Path

from safetensors.torch import save_file

from engine.models.embedded.card import FAMILY, Card, config_of
from engine.models.embedded.int8_weights import pack
from engine.models.embedded.network import Network
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.checkpoint import NEWEST, Progress, restore
from engine.training.config import Config
from engine.training.loader import special_tokens_of


def export(config: Config, network: Network, tokenizer_path: Path, folder: Path) -> None:
    """Write a folder that the engine can load."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(pack(network.state_dict()), folder / "model.safetensors")
    tokenizer = load_tokenizer(tokenizer_path)
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    card = Card(
        family=FAMILY,
        name=config.name,
        licence="Apache-2.0",
        shape=config.model,
        marks=special_tokens_of(tokenizer),
        below_tokens=config.holes.suffix_tokens,
        tail_tokens=32,
    )
    (folder / "config.json").write_text(config_of(card))


def export_checkpoint(config: Config, work: Path, folder: Path, checkpoint: Path | None = None) -> Progress:
    """Export a checkpoint of a run, by default the newest; return the run's progress at that checkpoint."""
    network = Network(config.model)
    progress = restore(checkpoint or work / NEWEST, network, [])
    export(config, network, work / "tokenizer.json", folder)
    return progress
