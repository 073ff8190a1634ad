"""What the language server would show while someone types, without its process: the same plan, present, reuse and
restraint.

The engine's scheduler runs in this process, and a fill has all the time it needs, so that machines of different speed
show the same.
"""

import attrs
from lsprotocol import types

from benchmarks.quality.typing_tasks import Screen, TypingTask
from engine.evaluation.calibration import Judged
from engine.protocol.confidence import FREE
from engine.protocol.messages import Fill, Filled, ModelInfo
from engine.schedule.scheduler import Scheduler
from lsp_server.documents.store import Documents, Snapshot, position_in
from lsp_server.settings import Settings
from lsp_server.suggest.pipeline import Plan, Presented, plan, present
from lsp_server.suggest.restraint import Restraint
from lsp_server.suggest.reuse import Rest, Reuse, longer

_BUDGET_MS = 60_000.0
_UTF32 = types.PositionEncodingKind.Utf32


class Suggester:
    """One open document. Called with how many characters of the task are typed, it returns what is on the screen.

    `judged` collects the confidence in every first line that the engine wrote to its end, shown or not, and whether the
    line was right. `asked` counts the fills, `reused` the keys that needed none.
    """

    def __init__(
        self,
        scheduler: Scheduler | None,
        model: ModelInfo,
        task: TypingTask,
        settings: Settings,
        workspace: str = "",
        restraint: Restraint | None = None,
    ) -> None:
        self._scheduler, self._model, self._task, self._settings = scheduler, model, task, settings
        self._documents, self._reuse, self._restraint = Documents(), Reuse(), restraint or Restraint()
        self._workspace = workspace
        self._uri = f"file:///{task.path}"
        self._documents.open(self._uri, task.language, 0, task.above + task.below)
        self._typed = 0
        self._screen = Screen()
        self.judged: list[Judged] = []
        self.asked = self.reused = 0

    async def __call__(self, typed: int) -> Screen:
        snapshot = self._type(typed)
        offset = len(self._task.above) + typed
        self._restraint.observe(snapshot, offset)
        followed = self._reuse.follow(snapshot, offset)
        rest = next((each for each in followed.texts if self._allows(snapshot, offset, each)), "") if followed else ""
        # Each key along the start of a line asks the engine again, as in lsp_server/requests/suggestions.py.
        if followed is not None and rest and not followed.offer.may_grow(rest, snapshot, offset):
            self.reused += 1
            self._screen = attrs.evolve(self._screen, text=rest, best=rest)
        else:
            self.asked += 1
            presented, best = await self._ask(snapshot, offset)
            if followed is not None and rest:
                presented = longer(presented, Rest(followed.offer, [rest]))
            self._screen = Screen(best=best)
            if presented:
                self._reuse.remember(snapshot, offset, presented, lambda: 0)
                self._screen = Screen(presented[0].text, best)
        self._restraint.showed(snapshot, offset, self._screen.text)
        return self._screen

    def _allows(self, snapshot: Snapshot, offset: int, text: str) -> bool:
        return self._restraint.refusal(snapshot, offset, text) is None

    def _type(self, typed: int) -> Snapshot:
        snapshot = self._snapshot()
        if typed == self._typed:
            return snapshot
        cursor = position_in(snapshot.source, len(self._task.above) + self._typed, _UTF32)
        change = types.TextDocumentContentChangePartial(
            range=types.Range(cursor, cursor), text=self._task.text[self._typed : typed]
        )
        self._documents.change(self._uri, typed, [change], _UTF32)
        self._typed = typed
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        snapshot = self._documents.snapshot(self._uri)
        if snapshot is None:
            raise RuntimeError(f"{self._uri} is open but has no snapshot")
        return snapshot

    async def _ask(self, snapshot: Snapshot, offset: int) -> tuple[list[Presented], str]:
        """Return what may be shown, and what the model would write, shown or not."""
        settings = attrs.evolve(self._settings, gate=self._restraint.price(self._settings.gate))
        planned = self._plan(snapshot, offset, settings)
        filled = await self._filled(planned.fill)
        line = self._task.text[self._typed :].partition("\n")[0]
        # FREE presents also what the gate hides.
        ungated = present(attrs.evolve(planned, settings=attrs.evolve(settings, gate=FREE)), filled)
        for whole in ungated:
            if not whole.is_start:
                first = whole.text.partition("\n")[0]
                self.judged.append(Judged(whole.confidence, bool(first) and first == line))
        best = ungated[0].text if ungated else ""
        return [each for each in present(planned, filled) if self._allows(snapshot, offset, each.text)], best

    async def fill_at(self, typed: int) -> Filled:
        """Type up to there, and return what the engine writes at the cursor, shown or not."""
        snapshot = self._type(typed)
        return await self._filled(self._plan(snapshot, len(self._task.above) + typed, self._settings).fill)

    def _plan(self, snapshot: Snapshot, offset: int, settings: Settings) -> Plan:
        return plan(snapshot, offset, self._model, settings, path=self._task.path, workspace=self._workspace)

    async def _filled(self, fill: Fill) -> Filled:
        if self._scheduler is None:
            raise RuntimeError("there is no engine to ask")
        return await self._scheduler.submit(attrs.evolve(fill, budget_ms=_BUDGET_MS), None).result
