"""Where batches come from: holes of the corpus, laid out."""

import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer

from engine.corpus import corpus
from engine.corpus.holes import HoleSampler
from engine.models.embedded.layout import SpecialTokens
from engine.models.stock.token_bytes import load_tokenizer
from engine.training.batch import Batch
from engine.training.collator import Collator, Stream
from engine.training.config import Config
from engine.training.tokenizer import SPECIALS

POOL = 64
"""Holes that are laid out before they are grouped by length."""


def special_tokens_of(tokenizer: Tokenizer) -> SpecialTokens:
    """Return the ids of the special tokens."""
    vocabulary = tokenizer.get_vocab()
    return SpecialTokens(*(vocabulary[name] for name in SPECIALS))


def batches(config: Config, work: Path, split: corpus.Split, seed: int) -> Iterator[Batch]:
    """Yield batches without end. `work` holds corpus/ and tokenizer.json."""
    tokenizer = load_tokenizer(work / "tokenizer.json")
    files = corpus.load(work / "corpus", split)
    sampler = HoleSampler(files, config.corpus.shares, config.holes.weights, seed)
    collator = Collator(config, tokenizer, special_tokens_of(tokenizer), seed)
    rng, lengths = random.Random(seed), config.holes.stream_tokens
    canvas, rows = config.objective.canvas_rows, config.optimizer.rows
    while True:
        # Sequences of about the same length together, so that little of a batch is padding.
        drawn = [
            collator.lay_out(sampler.draw(), int(rng.choices(list(lengths), list(lengths.values()))[0]))
            for _ in range(POOL)
        ]
        drawn.sort(key=len)
        parts: list[list[Stream]] = []
        while drawn:
            count = max(1, rows // (len(drawn[-1]) + canvas))
            parts.append(drawn[-count:])
            del drawn[-count:]
        rng.shuffle(parts)
        for part in parts:
            yield collator.batch(part, canvas)
