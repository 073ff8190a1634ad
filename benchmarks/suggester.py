"""What the language server would have on the screen, without its process: the same cut, shape, gate and reuse.

The engine's scheduler runs in this process and a fill has all the time it wants, so that two runs on machines of
different speed show the same.
"""

import attrs
from lsprotocol import types

from engine.evaluation.calibration import Judged
from engine.evaluation.keystrokes import Screen, TypingTask
from engine.protocol.messages import Fill
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.store import Documents, Snapshot, position_at
from lsp_server.hole.hole import cut_hole
from lsp_server.settings import Settings
from lsp_server.suggest.gate import confidence_of, let_through
from lsp_server.suggest.reuse import Reuse
from lsp_server.suggest.shape import shape

_BUDGET_MS = 60_000.0
_UTF32 = types.PositionEncodingKind.Utf32


class Suggester:
    """One open document at a place; called with how much of the place is typed, it says what is on the screen.

    `judged` collects the confidence in every first line that the engine wrote to its end, and whether it was right, be
    it shown or not; `asked` counts the fills, `reused` the moments that needed none.
    """

    def __init__(self, scheduler: Scheduler, place: TypingTask, settings: Settings) -> None:
        self._scheduler, self._place, self._settings = scheduler, place, settings
        self._documents, self._reuse = Documents(), Reuse()
        self._uri = f"file:///{place.path}"
        self._documents.open(self._uri, place.language, 0, place.above + place.below)
        self._typed = 0
        self._screen = Screen()
        self.judged: list[Judged] = []
        self.asked = self.reused = 0

    async def __call__(self, typed: int) -> Screen:
        snapshot = self._type(typed)
        offset = len(self._place.above) + typed
        rest = self._reuse.follow(snapshot, offset)
        # What is left of a start is asked for anew, as lsp_server/suggestions.py does.
        if rest and not self._screen.cut:
            self.reused += 1
            return attrs.evolve(self._screen, text=rest[0])
        self.asked += 1
        self._screen = await self._ask(snapshot, offset)
        self._reuse.remember(snapshot, offset, [self._screen.text] if self._screen.text else [])
        return self._screen

    def _type(self, typed: int) -> Snapshot:
        place, at = self._place, len(self._place.above) + self._typed
        snapshot = self._snapshot()
        if typed == self._typed:
            return snapshot
        cursor = position_at(snapshot, at, _UTF32)
        change = types.TextDocumentContentChangePartial(
            range=types.Range(cursor, cursor), text=place.text[self._typed : typed]
        )
        self._documents.change(self._uri, typed, [change], _UTF32)
        self._typed = typed
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        snapshot = self._documents.snapshot(self._uri)
        if snapshot is None:
            raise RuntimeError(f"{self._uri} is open but has no snapshot")
        return snapshot

    async def _ask(self, snapshot: Snapshot, offset: int) -> Screen:
        hole, settings = cut_hole(snapshot, offset), self._settings
        fill = Fill(
            id=0,
            prefix=hole.prefix,
            suffix=hole.suffix,
            path=self._place.path,
            language=snapshot.language.id,
            extent=hole.extent,
            budget_ms=_BUDGET_MS,
            max_tokens=settings.max_tokens,
            min_line_probability=settings.gate,
            rule=settings.rule,
        )
        filled = await self._scheduler.submit(fill, None).result
        candidate = filled.candidates[0]
        text = shape(candidate.text, hole, snapshot, settings.max_lines)
        if not text:
            return Screen()
        line, first = (part.partition("\n")[0] for part in (self._place.text[self._typed :], text))
        if candidate.finish != "unsure":
            self.judged.append(Judged(confidence_of(candidate, text), bool(first) and first == line))
        shown = let_through(candidate, text, hole, snapshot.language, settings)
        return Screen(shown.text, shown.cut) if shown is not None else Screen()
