"""Drafters with known output, and tiny models that verify their drafts."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer

from engine.fill.strategies import DraftAndVerify
from engine.models.left_to_right.drafting import Drafter, Unfinished
from engine.models.left_to_right.torch_model import QwenFimModel
from engine.models.load import load
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill
from support.fill_tasks import run_to_end, started
from support.fim_checkpoints import TEXT_TOKENS, FimCheckpoint, save_fim_checkpoint


def load_fim(folder: Path) -> QwenFimModel:
    """Load a checkpoint in fp32, also on a processor with bf16."""
    family = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(family, QwenFimModel)
    return family


def fim_family(folder: Path, drafter: str = "none") -> tuple[FimCheckpoint, QwenFimModel]:
    """Save a checkpoint into a new folder and load it. `drafter` is a name or a folder."""
    checkpoint = save_fim_checkpoint(folder, {"drafter": drafter})
    return checkpoint, load_fim(folder)


class Prophet:
    """Drafts the tokens that the fill will have, from the end of the written text on."""

    def __init__(self, tokens: list[int], tokenizer: Tokenizer) -> None:
        self.name, self.tokenizer = "prophet", tokenizer
        self._tokens, self._token_bytes = tokens, TokenBytes(tokenizer)
        self.asked: list[int] = []

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        return [self._draft(hole) for hole in holes]

    def _draft(self, hole: Unfinished) -> list[int]:
        self.asked.append(hole.length)
        known = "".join(self.texts_of(self._tokens))
        assert known.startswith(hole.text)
        rest = self.tokenizer.encode(known[len(hole.text) :], add_special_tokens=False).ids
        starts = [
            index for index in range(len(self._tokens)) if "".join(self.texts_of(self._tokens[:index])) == hole.text
        ]
        return (self._tokens[starts[0] :] if starts else rest)[: hole.length]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)


class Fool:
    """Drafts the same token again and again, or fails."""

    def __init__(self, token: int, tokenizer: Tokenizer, failure: Exception | None = None) -> None:
        self.name, self.tokenizer = "fool", tokenizer
        self._token, self._failure, self._token_bytes = token, failure, TokenBytes(tokenizer)
        self.asked: list[int] = []
        self.together: list[int] = []

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        self.asked += [hole.length for hole in holes]
        self.together.append(len(holes))
        if self._failure is not None:
            raise self._failure
        return [[self._token] * hole.length for hole in holes]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)


def with_drafter(family: QwenFimModel, drafter: Drafter | None) -> QwenFimModel:
    """Return the same model with another drafter; both share the network."""
    return QwenFimModel(
        family.info, family.marks, family._network, family.tokenizer, family._token_bytes, drafter, family.threads
    )


def endless(family: QwenFimModel) -> QwenFimModel:
    """Let a family write nothing but ASCII, and no end: a random model's bytes seldom make characters."""
    strange = {token for token in range(TEXT_TOKENS) if not family.texts_of([token])[0].isascii()}
    family.never = tuple(sorted(strange.union(family.never, family.marks.ends)))
    family._forbidden = torch.tensor(family.never)
    return family


def run_through(family: QwenFimModel, fill: Fill) -> DraftAndVerify:
    """Fill a hole without a scheduler: the length of drafts would learn from its warm-up."""
    filling = run_to_end(family, started(family, fill))
    assert isinstance(filling, DraftAndVerify)
    return filling
