"""A tiny random DiffusionGemma in the released file layout, with a tokenizer like Gemma's."""

import json
from pathlib import Path
from typing import Any

import torch
from support.sources import source_paths
from tokenizers import Tokenizer, decoders, models, normalizers, trainers

from engine.models.diffusion_gemma.loading import load
from engine.models.diffusion_gemma.model import DiffusionGemmaModel

ROOT = Path(__file__).parent.parent.parent
WINDOW = 16
CANVAS = 32
CONTEXT = 1024
VOCABULARY = 700
SPECIAL_TOKENS = ["<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>"]
END, TURN_END = 1, 5


def tokenizer_of_sources() -> Tokenizer:
    """Return a tokenizer trained on this project's sources. Its vocabulary is smaller than the model's."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    octets = [f"<0x{octet:02X}>" for octet in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 20, special_tokens=SPECIAL_TOKENS, initial_alphabet=["\n", "▁"]
    )
    lines = [line for path in source_paths() for line in path.read_text().splitlines(True)]
    tokenizer.train_from_iterator(lines, trainer)
    learned = json.loads(tokenizer.to_str())
    model = learned["model"]
    learned_texts = [text for text in model["vocab"] if text not in SPECIAL_TOKENS]
    room = VOCABULARY - 20 - len(SPECIAL_TOKENS) - len(octets)
    kept = [*SPECIAL_TOKENS, *octets, *learned_texts[:room]]
    model["vocab"] = {text: number for number, text in enumerate(kept)}
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) in model["vocab"]]
    return Tokenizer.from_str(json.dumps(learned))


def save_tiny_gemma(folder: Path, window: int = CONTEXT) -> Path:
    """Save 0.5 million random weights in several shards, with the other files of a release."""
    from transformers.models.diffusion_gemma import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 16,
        "sliding_window": WINDOW,
        "num_experts": 4,
        "top_k_experts": 2,
        "moe_intermediate_size": 16,
        "max_position_embeddings": window,
        "eos_token_id": [END, TURN_END],
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 8,
    }
    configuration = DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=CANVAS)
    torch.manual_seed(1)
    model = DiffusionGemmaForBlockDiffusion(configuration)
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=0.2 if "embed" not in name else 0.5)
    # In a random network rounding differences grow from step to step until tokens change; this damps them.
    model.model.decoder.self_conditioning.down_proj.weight.data *= 0.1
    for half in (model.model.encoder.language_model, model.model.decoder):
        for layer in half.layers:
            layer.layer_scalar.fill_(0.8)  # not 1, the default, so that a lost one is noticed
    model.save_pretrained(folder, max_shard_size="400KB")
    tokenizer_of_sources().save(str(folder / "tokenizer.json"))
    return folder


def stock_model(folder: Path) -> Any:
    """Load the checkpoint as transformers does, in fp32."""
    from transformers.models.diffusion_gemma import DiffusionGemmaForBlockDiffusion

    return DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype=torch.float32).eval()  # type: ignore[no-untyped-call]


def exact_family(folder: Path) -> DiffusionGemmaModel:
    """Load the checkpoint as the engine does, but always in fp32, so that tests can compare results exactly."""
    config = json.loads((folder / "config.json").read_text())
    return load(folder, config, 1, torch.device("cpu"), "fp32")
