"""Jobs that write no text: one reads the context of a hole, one says how likely the text is that the hole has."""

import time

from engine.errors import ModelError
from engine.fill.draft_planner import PassTimer
from engine.fill.interface import Bounds, Filling, FillTask, Pass
from engine.fill.sampler import PassResult, Sampler
from engine.fill.scoring import Scoring
from engine.fill.stream import StreamModel
from engine.protocol.messages import Filled, Progress
from engine.schedule.job import FillingJob, Job, OpenHole

SPARED_ROWS = 64
"""A context that lacks at most this many tokens is not read ahead: the fill itself soon has them."""


class ReadJob(Job):
    """Reads a context, all of it or nothing: no canvas has a pass that could read the rest."""

    def __init__(self, hole: OpenHole) -> None:
        super().__init__(hole)
        self._is_spared = hole.lacks <= SPARED_ROWS

    @property
    def unread(self) -> int:
        return 0 if self._is_spared else self.hole.lacks

    def passes(self, encode_rows: int) -> list[Pass]:
        return [self.hole.read(encode_rows)] if self.unread else []

    def absorb(self, index: int, result: PassResult, elapsed_ms: float, expected_ms: float) -> None:
        self.hole.encode_ms += elapsed_ms

    def done(self, timer: PassTimer) -> bool:
        return not self.unread or time.perf_counter() > self.hole.deadline

    def progress(self) -> Progress:
        return Progress(self.hole.request.id, 0, [], ms=self.hole.ms)

    def filled(self) -> Filled:
        return self.hole.answer([], 0, self.hole.model.default.rule)


class ScoreJob(FillingJob):
    """Says how likely the text of a hole is."""

    def __init__(self, hole: OpenHole, text: str) -> None:
        """Raises ModelError for a model that cannot say it."""
        super().__init__(hole)
        model = hole.model
        if not (isinstance(model, StreamModel) and model.info.canvas_tokens):
            raise ModelError(f"{model.info.name} cannot say how likely a text is; the embedded model can")
        self._model, self._text = model, text

    def _first(self) -> Filling:
        hole, model = self.hole, self._model
        tokens = model.tokenizer.encode(hole.layout.typed + self._text, add_special_tokens=False).ids
        bounds = Bounds(hole.request.extent, hole.request.max_tokens)
        return Scoring(model, FillTask(hole.context, hole.layout, bounds, Sampler(), model.default), tokens)

    def filled(self) -> Filled:
        scoring = self._fillings[0]
        return self.hole.answer([scoring.answer()], scoring.steps, self.hole.model.default.rule)
