"""From a checkpoint to a model's folder: safetensors, tokenizer, config."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from engine.models.embedded import FAMILY, Card, config_of
from engine.models.network import Network
from engine.training.config import Config
from engine.training.train import marks_of


def export(config: Config, network: Network, tokenizer_path: Path, folder: Path) -> None:
    """Write a folder that the engine loads: weights in bf16, each [out, in] as in the network."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.to(torch.bfloat16).contiguous() for name, value in network.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    (folder / "tokenizer.json").write_bytes(tokenizer_path.read_bytes())
    card = Card(
        family=FAMILY,
        name=config.name,
        licence="Apache-2.0",
        shape=config.model,
        marks=marks_of(tokenizer),
        below_tokens=config.holes.suffix_tokens,
        tail_tokens=32,
    )
    (folder / "config.json").write_text(config_of(card))


def export_checkpoint(config: Config, work: Path, folder: Path) -> None:
    """Export the newest checkpoint of a run."""
    network = Network(config.model)
    network.load_state_dict(torch.load(work / "checkpoint.pt", map_location="cpu", weights_only=True)["network"])
    export(config, network, work / "tokenizer.json", folder)
