"""A model that recites one text, byte by byte, and whose canvas sees as many bytes ahead as a test says."""

from collections.abc import Sequence

import attrs
import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from engine.fill.draft_planner import DraftPlanner
from engine.fill.interface import Bounds, Context, Filling, FillStrategy, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.sampler import PassResult, Predictions, Sampler
from engine.fill.strategies import DEFAULT, start_stream_fill
from engine.fill.stream import CanvasUse, StreamPass
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import HoleRequest, ModelInfo, RuleName

SURE = 0.9
MIDDLE, END, MASK = 256, 257, 258
WRONG = ord("?")


@attrs.define
class ListContext:
    """Implements interface.Context."""

    tokens: list[int] = attrs.field(factory=list)
    bytes: int = 0

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def fork(self, length: int) -> "ListContext":
        return ListContext(self.tokens[:length])


class RecitingModel:
    """Implements fill.stream.StreamModel. After a wrong byte it goes on with the text where it would be without it."""

    threads = 1
    tokenizer = Tokenizer(WordLevel({"": 0}, ""))
    memory_use: MemoryUse = "mixture"
    default = DEFAULT
    mask, end, middle = MASK, END, MIDDLE
    info = ModelInfo(
        name="reciting",
        family="test",
        licence="",
        parameters=0,
        context_tokens=1000,
        canvas_tokens=16,
        noise="absorbing",
        device="cpu",
        dtype="",
    )

    def __init__(self, text: str, sight: int) -> None:
        """`sight` positions of each canvas are right, all others are wrong."""
        self._recited, self._sight = [*text.encode(), END], sight
        self.drafts, self.canvas_use = DraftPlanner(), CanvasUse()

    def lay_out(self, request: HoleRequest) -> Layout:
        return Layout([*request.prefix.encode()], above=[*request.prefix.encode()], anchor=MIDDLE)

    def new_context(self) -> ListContext:
        return ListContext()

    def read(self, context: Context, tokens: list[int]) -> StreamPass:
        return StreamPass(context, tokens, [], [])

    def start_fill(self, task: FillTask) -> Filling:
        return start_stream_fill(self, task)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        return [self._run(expect_type(item, StreamPass)) for item in passes]

    def _run(self, item: StreamPass) -> PassResult:
        start = len(item.context.tokens)
        item.context.tokens += item.append
        anchor = item.context.tokens.index(self.middle)
        likeliest = []
        for row in item.wanted:
            position = start + row - anchor
            token = self._recited[min(position, len(self._recited) - 1)]
            likeliest.append(token if row - len(item.append) < self._sight else WRONG)
        top = item.query.top
        tokens = np.array([[token, *(ord("a") + other for other in range(top - 1))] for token in likeliest])
        shares = np.full((len(likeliest), top), (1 - SURE) / max(1, top), np.float32)
        shares[:, 0] = SURE
        named = np.zeros(0) if item.query.named is None else item.query.named
        of_named = np.where(named == tokens[:, :1], SURE, 0) if named.size else np.zeros((len(likeliest), 0))
        zeros = np.zeros(len(likeliest), np.float32)
        return PassResult(Predictions(tokens, shares, zeros, of_named.astype(np.float32), zeros))

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return [typed[0]]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return [chr(token) for token in tokens]

    def bytes_of(self, token: int) -> bytes:
        return bytes([token]) if token < MIDDLE else b""

    def breaks_line(self, token: int) -> bool:
        return token == ord("\n")


class TokenReciter(RecitingModel):
    """Recites tokens of a real tokenizer."""

    def __init__(self, token_bytes: TokenBytes, tokens: Sequence[int], sight: int) -> None:
        super().__init__("", sight)
        self.end, self.mask, self.middle = (len(token_bytes.bytes) + number for number in range(3))
        self._token_bytes, self._recited = token_bytes, [*tokens, self.end]

    def compatible_tokens(self, typed: bytes) -> list[int]:
        return self._recited[:1]

    def texts_of(self, tokens: Sequence[int]) -> list[str]:
        return self._token_bytes.texts_of(tokens)

    def bytes_of(self, token: int) -> bytes:
        return self._token_bytes.bytes[token] if token < self.end else b""

    def breaks_line(self, token: int) -> bool:
        return token < self.end and self._token_bytes.breaks_line(token)


def begun(model: RecitingModel, rule: RuleName, most: int = 100) -> Filling:
    """Return the fill of a hole without anything around it."""
    task = FillTask(
        model.new_context(), Layout([65], anchor=MIDDLE), Bounds("lines", most), Sampler(), FillStrategy(rule)
    )
    return model.start_fill(task)
