"""Which windows of the workspace a fill brings to a model that reads related code in its prompt."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import attrs

from engine.memory.windows import MOST_QUERY_TOKENS, LineTexts, Window
from engine.memory.workspace import WorkspaceMemories
from engine.protocol.messages import Fill, Snippet

LINES_ABOVE = 8
"""Lines above the cursor that are part of the query, the cursor's own line included."""
LINES_BELOW = 3
HELD_LINES = 12
"""Windows are held until the cursor has moved down by about as many lines."""
HELD_FILES = 64
GROWTH = 1.125
"""Windows are chosen again once the workspace has so many times the tokens."""
_QUERY_CHARACTERS = 4000


@attrs.frozen
class _Held:
    """The windows of a file. `anchor`: the lines above the cursor when they were chosen. `tokens`: of the workspace."""

    anchor: list[str]
    tokens: int
    windows: list[Window]


class RelatedWindows:
    """Chooses windows for holes, and holds the choice while the cursor stays near.

    Models read related code before the code above the cursor, and keep what they have read. So another choice for each
    line would make them read everything again. All methods belong on one thread.
    """

    def __init__(
        self, workspaces: WorkspaceMemories, tokenize: Callable[[str], Sequence[int]], lines: LineTexts
    ) -> None:
        self._workspaces, self._tokenize, self._lines = workspaces, tokenize, lines
        self._held: OrderedDict[tuple[str, str], _Held] = OrderedDict()

    def snippets(self, fill: Fill) -> list[Snippet]:
        """Return windows as snippets, the best first. The fill's own snippets are not repeated."""
        if fill.memory != "workspace" or not fill.workspace:
            return []
        return [
            Snippet(window.path, window.text)
            for window in self._windows(fill)
            if not any(window.path == given.path and window.text in given.text for given in fill.snippets)
        ]

    def drop(self, workspace: str, paths: Sequence[str] | None) -> None:
        """Drop choices that have windows of these files of a workspace, by default of any of its files."""
        for key, held in list(self._held.items()):
            if key[0] == workspace and (paths is None or any(window.path in paths for window in held.windows)):
                del self._held[key]

    def _windows(self, fill: Fill) -> list[Window]:
        key, lines = (fill.workspace, fill.path), _lines_above(fill.prefix)
        tokens, held = self._workspaces.status(fill.workspace).tokens, self._held.pop(key, None)
        if held is None or not _contains(lines, held.anchor) or tokens > GROWTH * held.tokens:
            held = _Held(lines[-2:], tokens, self._choose(fill))
        if held.windows:
            self._held[key] = held
        while len(self._held) > HELD_FILES:
            self._held.popitem(last=False)
        return held.windows

    def _choose(self, fill: Fill) -> list[Window]:
        above = "".join(fill.prefix[-_QUERY_CHARACTERS:].splitlines(keepends=True)[-LINES_ABOVE:])
        below = "".join(fill.suffix[:_QUERY_CHARACTERS].splitlines(keepends=True)[:LINES_BELOW])
        after = self._tokenize(below)[: MOST_QUERY_TOKENS // 4]
        before = self._tokenize(above)[len(after) - MOST_QUERY_TOKENS :]
        return self._workspaces.windows(fill.workspace, fill.path, [before, after], self._lines)


def _lines_above(prefix: str) -> list[str]:
    """Return the last lines that end above the cursor, without empty ones."""
    lines = prefix[-2 * _QUERY_CHARACTERS :].splitlines()
    if not prefix.endswith("\n"):
        lines = lines[:-1]
    return [line for line in lines if line.strip()][-HELD_LINES:]


def _contains(lines: list[str], part: list[str]) -> bool:
    """Return whether `part` are neighbouring items of `lines`. An empty part is contained in no lines only."""
    if not part:
        return not lines
    return any(lines[at : at + len(part)] == part for at in range(len(lines) - len(part) + 1))
