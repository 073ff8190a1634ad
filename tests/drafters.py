"""Drafters that a test knows all about, and tiny families that drafts are verified by."""

from collections.abc import Sequence
from pathlib import Path

from fim_checkpoints import TEXT_TOKENS, FimCheckpoint, save_fim_checkpoint
from tokenizers import Tokenizer

from engine.fill.filling import Hole
from engine.fill.sampler import Sampler
from engine.fill.strategy import FillStrategy
from engine.models.load import load
from engine.models.qwen_fim.drafter import Drafter, Unfinished
from engine.models.qwen_fim.filling import DraftedFilling
from engine.models.qwen_fim.model import QwenFimModel
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill


def load_fim(folder: Path) -> QwenFimModel:
    """Load a checkpoint in fp32, where the processor has bf16 as well."""
    family = load(str(folder), threads=1, device="cpu", precision="fp32")
    assert isinstance(family, QwenFimModel)
    return family


def fim_family(folder: Path, drafter: str = "none") -> tuple[FimCheckpoint, QwenFimModel]:
    """Save a checkpoint into a new folder and load it with the drafter of that name or folder."""
    checkpoint = save_fim_checkpoint(folder, {"drafter": drafter})
    return checkpoint, load_fim(folder)


class Prophet:
    """Drafts what is certain to be written, from where the tokens that are written already end."""

    def __init__(self, tokens: list[int], tokenizer: Tokenizer) -> None:
        self.name, self.tokenizer = "prophet", tokenizer
        self._tokens, self._pieces = tokens, TokenBytes(tokenizer)
        self.asked: list[int] = []

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        return [self._draft(hole) for hole in holes]

    def _draft(self, hole: Unfinished) -> list[int]:
        self.asked.append(hole.length)
        known = "".join(self.texts_of(self._tokens))
        assert known.startswith(hole.text)
        rest = self.tokenizer.encode(known[len(hole.text) :], add_special_tokens=False).ids
        starts = [at for at in range(len(self._tokens)) if "".join(self.texts_of(self._tokens[:at])) == hole.text]
        return (self._tokens[starts[0] :] if starts else rest)[: hole.length]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._pieces.texts_of(tokens)


class Fool:
    """Drafts one token over and over, or fails."""

    def __init__(self, token: int, tokenizer: Tokenizer, failure: Exception | None = None) -> None:
        self.name, self.tokenizer = "fool", tokenizer
        self._token, self._failure, self._pieces = token, failure, TokenBytes(tokenizer)
        self.asked: list[int] = []

    def draft(self, holes: Sequence[Unfinished]) -> list[list[int]]:
        self.asked += [hole.length for hole in holes]
        if self._failure is not None:
            raise self._failure
        return [[self._token] * hole.length for hole in holes]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._pieces.texts_of(tokens)


def with_drafter(family: QwenFimModel, drafter: Drafter | None) -> QwenFimModel:
    """Return the family with another drafter; the network is shared."""
    return QwenFimModel(
        family.info, family.marks, family._network, family._tokenizer, family._pieces, drafter, family.threads
    )


def endless(family: QwenFimModel) -> QwenFimModel:
    """Let a family write nothing but ASCII, and no end: a random model's bytes seldom make characters."""
    strange = {token for token in range(TEXT_TOKENS) if not family.texts_of([token])[0].isascii()}
    family.never = tuple(sorted(strange.union(family.never, family.marks.ends)))
    return family


def run_through(family: QwenFimModel, fill: Fill) -> DraftedFilling:
    """Fill a hole without a scheduler, and so without its warm-up, of which the length of drafts would learn."""
    hole = Hole(family.lay_out(fill), fill.extent, fill.max_tokens)
    filling = family.filling(family.new_context(), hole, Sampler(forbidden=family.never), FillStrategy(fill.rule))
    assert isinstance(filling, DraftedFilling)
    while filling.finish is None:
        (found,) = family.run([filling.next_pass()])
        filling.absorb(found, 1 << 20)
    return filling
