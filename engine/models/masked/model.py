"""A loaded masked model: the prefix, a middle of masks, and the suffix after it, all in place and seen by all."""

import time
from collections.abc import Sequence

import attrs
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.fill.interface import Context, Filling, FillStrategy, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult
from engine.models.masked.filling import MaskedFilling, MaskedTraits
from engine.models.masked.network import CapturedMiddles, KernelMaskedNetwork, MaskedNetwork
from engine.models.masked.rows import MaskedPass
from engine.models.predict import predict
from engine.models.stock.token_bytes import OfTokenBytes, TokenBytes
from engine.models.stock.tokenizer import heading, related_tokens
from engine.protocol.messages import HoleRequest, ModelInfo

_TOKEN_CHARACTERS = 8
"""Tokens are shorter on average. Text further away than this many characters a token is not even read."""


@attrs.define
class NoContext:
    """Implements interface.Context for models that read nothing causally."""

    tokens: list[int] = attrs.field(factory=list)
    bytes: int = 0

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "NoContext":
        return NoContext()


class MaskedModel(OfTokenBytes):
    """Implements interface.Model."""

    def __init__(
        self,
        info: ModelInfo,
        traits: MaskedTraits,
        network: MaskedNetwork | KernelMaskedNetwork,
        tokenizer: Tokenizer,
        token_bytes: TokenBytes,
        threads: int,
        memory_use: MemoryUse = "windows",
    ) -> None:
        self.info, self.traits, self.threads = info, traits, threads
        self.default, self.memory_use = FillStrategy("threshold"), memory_use
        special = traits.special
        self.end = special.end
        allowed = {self.end, *special.padding, special.expand}
        without_text = set(range(network.vocabulary)).difference(tokenizer.get_vocab().values())
        self.never = tuple(sorted((set(tokenizer.get_added_tokens_decoder()) | without_text) - allowed))
        """Tokens that no fill may hold."""
        self._forbidden = torch.tensor(self.never, dtype=torch.long, device=network.device)
        self._network, self.tokenizer, self._token_bytes = network, tokenizer, token_bytes
        self.captured: CapturedMiddles | None = None
        """Runs steps as CUDA graphs, where there is CUDA."""
        if isinstance(network, MaskedNetwork) and network.device.type == "cuda":
            self.captured = CapturedMiddles(network)

    def lay_out(self, request: HoleRequest) -> Layout:
        special = self.traits.special
        begin, end = ([special.begin], [special.end]) if special.begin is not None else ([], [])
        window = min(self.traits.window, self.info.reading_tokens or self.traits.window)
        room = window - min(request.max_tokens, window // 2) - len(begin) - len(end)
        reach = room * _TOKEN_CHARACTERS
        prefix, suffix = request.prefix[-reach:].replace("\r\n", "\n"), request.suffix[:reach].replace("\r\n", "\n")
        above, after = cut_to_room(self._encode(prefix), self._encode(suffix), room)
        before = above
        if request.snippets and request.path:
            named = self._encode(heading(request.path))
            left = min(room // 2, room - len(before) - len(after)) - len(named)
            if related := related_tokens(self._encode, request.snippets, left):
                before = [*related, *named, *before]
        return Layout(context=[], before=[*begin, *before], after=[*after, *end], above=above, below=after)

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def new_context(self) -> NoContext:
        return NoContext()

    def read(self, context: Context, tokens: list[int]) -> Pass:
        raise TypeError("a masked model lays out no context, and reads none")

    def start_fill(self, task: FillTask) -> Filling:
        return MaskedFilling(self, task, self.traits)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        masked_passes = [expect_type(item, MaskedPass) for item in passes]
        started = time.perf_counter()
        logits = torch.cat(self.logits(masked_passes))
        counts = [len(item.wanted) for item in masked_passes]
        predictions = predict(logits, [item.query for item in masked_passes], counts, self._forbidden)
        self.traits.timer.record(sum(item.rows for item in passes), (time.perf_counter() - started) * 1000)
        return [PassResult(predicted) for predicted in predictions]

    def logits(self, passes: Sequence[MaskedPass]) -> list[Tensor]:
        """Run passes and return for each its logits [wanted, vocabulary], fp32, on the model's device."""
        captured = None if self.captured is None else self.captured.run(passes)
        return self._network.run(passes) if captured is None else captured


def cut_to_room(before: list[int], after: list[int], room: int) -> tuple[list[int], list[int]]:
    """Return the tokens of both sides in at most `room` tokens; those furthest from the hole are dropped.

    The prefix has two thirds and the suffix one third. Room that one of them does not need goes to the other.
    """
    share = max(0, room - room // 3)
    kept_after = min(len(after), max(room // 3, room - len(before)))
    kept_before = min(len(before), max(share, room - len(after)), room - kept_after)
    return before[len(before) - kept_before :], after[:kept_after]
