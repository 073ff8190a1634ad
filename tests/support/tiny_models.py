"""What tiny models of the embedded kind are made of: a small tokenizer, and random weights."""

from collections.abc import Iterable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.models.embedded.shape import Shape
from engine.training.convert import SPECIALS, Merges, tokenizer_of

TINY = Shape(
    vocabulary=400,
    width=64,
    layers=2,
    heads=4,
    key_heads=2,
    head_width=16,
    hidden=128,
    context_tokens=192,
    canvas_tokens=8,
)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train a BPE on `texts`; ids 0 to 7 are the special tokens in the order of SPECIALS."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = tokenizer_of(Merges([], []), SPECIALS).pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def randomize(network: torch.nn.Module, spread: float) -> None:
    """Draw all weights anew; the norms' gains stay near 1, or nothing of a row would be left after some layers."""
    for weight in network.parameters():
        torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=spread)
