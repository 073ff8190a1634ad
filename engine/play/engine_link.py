"""The page's own connection to the engine: how likely each token of a line is, and what the engine remembers."""

import asyncio
from collections.abc import Iterator

import attrs

from engine.errors import EngineUnavailable, MidspanError
from engine.http.body import in_thread
from engine.http.connection import Problem
from engine.http.engine_links import EngineLinks
from engine.protocol.memory_messages import MemoryCount
from engine.protocol.messages import Cell, Progress, Score

PIECE = 60
"""Characters of a line that are scored together: about as many tokens as a canvas had in training."""
MOST_SCORED = 480
"""Characters of a line that are scored. Longer lines are data."""
PATIENCE_MS = 20_000.0
STATUS_S = 2.0


@attrs.frozen
class Guess:
    text: str
    probability: float


@attrs.frozen
class HeatToken:
    """A token of a line, how likely it is from both sides, and the likeliest tokens in its place. The first one may
    begin with the line break before the line."""

    text: str
    probability: float
    likeliest: list[Guess]


@attrs.frozen
class EngineLink:
    """What the page asks the engine itself."""

    _links: EngineLinks

    async def heat(self, text: str, path: str, number: int) -> list[HeatToken]:
        """Return the tokens of line `number`, from 0. A blank line has none. Raises MidspanError."""
        line = await in_thread(_line, text, number)
        if not line.text.strip():
            return []
        model = await self._links.start()
        if model.server:
            raise Problem(400, f"{model.server} cannot say how likely a text is; the embedded model can")
        tokens: list[HeatToken] = []
        for start, end in _pieces(line.text):
            # The line break belongs to the first piece: its row sees the canvas, as the row of the cursor does not.
            first = line.begin + start - (1 if number and not start else 0)
            score = Score(
                id=0,
                prefix=text[:first],
                suffix=text[line.begin + end :],
                path=path,
                extent="lines",
                budget_ms=PATIENCE_MS,
                memory="off",
                text=text[first : line.begin + end],
            )
            tokens += await self._scored(score)
        return tokens

    async def _scored(self, score: Score) -> list[HeatToken]:
        last: list[Cell] = []

        def note(progress: Progress) -> None:
            last[:] = progress.cells

        candidate = (await self._links.ask("", score, note)).candidates[0]
        if candidate.finish != "complete":
            raise MidspanError("the engine had no time for this line; it is busy")
        guesses: list[list[Guess]] = [[] for _ in candidate.tokens]
        for cell in last:
            if cell.at < len(guesses):
                guesses[cell.at].append(Guess(cell.text, cell.probability or 0.0))
        triples = zip(candidate.tokens, candidate.confidence, guesses, strict=True)
        return [HeatToken(text, probability, likeliest) for text, probability, likeliest in triples]

    async def memories(self) -> list[MemoryCount]:
        """Return what the engine, which must run, knows of each workspace."""
        try:
            async with asyncio.timeout(STATUS_S):
                return (await self._links.status())[1].each
        except (EngineUnavailable, TimeoutError):  # it ends, or learns a large file
            return []


@attrs.frozen
class _Line:
    text: str
    begin: int


def _line(text: str, number: int) -> _Line:
    lines = text.split("\n")
    if number >= len(lines):
        raise Problem(400, "the text has no such line; reload the page")
    return _Line(lines[number], sum(len(line) + 1 for line in lines[:number]))


def _pieces(line: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a line's pieces. They end before a space, where there is one."""
    start, end = 0, min(len(line), MOST_SCORED)
    while end - start > PIECE:
        space = line.rfind(" ", start + PIECE // 2, start + PIECE)
        stop = space if space > start else start + PIECE
        yield start, stop
        start = stop
    yield start, end
