"""What benchmarks/editors/minutes.py counts of what was typed, and its tables."""

from collections.abc import Iterable, Sequence
from itertools import dropwhile

import attrs
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.common.statistic import Percentiles
from benchmarks.editors.minutes_typing import Moment, Taken
from engine.evaluation.keystrokes import is_start


@attrs.frozen
class TypingFigures:
    """Counts of keys. `shown`: with ghost text at the next key; `right` of these, as far as it goes.

    `agreed`: the ghost text began with the key and had more; `flicker` of these: it vanished or changed before the next
    key, `lost` of these: it was not there again at the next key. `menu`: the completion menu was open at the next key;
    `could` of these: the server alone has a suggestion there, and the entry that is selected is not the same text;
    `beside` of these: ghost text was visible.
    """

    kind: str
    keys: int
    shown: int
    right: int
    agreed: int
    flicker: int
    lost: int
    menu: int
    could: int
    beside: int


@attrs.frozen
class TakingFigures:
    """How many suggestions were taken, and milliseconds from the key to the next one on the screen, where one came."""

    taken: int
    next_ms: Percentiles


def typing_figures(kind: str, moments: Sequence[Moment], alone: Sequence[str]) -> TypingFigures:
    """Count. `alone` is for each moment what the server alone suggests after its key."""
    shown = [moment for moment in moments if _ghost(moment)]
    agreed = [moment for moment in moments if _agrees(moment)]
    menu = [(moment, text) for moment, text in zip(moments, alone, strict=True) if moment.screens[-1].menu]
    could = [moment for moment, text in menu if text]
    return TypingFigures(
        kind=kind,
        keys=len(moments),
        shown=len(shown),
        right=sum(is_start(_first_line(_ghost(moment)), moment.rest) for moment in shown),
        agreed=len(agreed),
        flicker=sum(any(not _follows(moment, ghost) for ghost in _after(moment)) for moment in agreed),
        lost=sum(not _follows(moment, _ghost(moment)) for moment in agreed),
        menu=len(menu),
        could=len(could),
        beside=sum(bool(_ghost(moment)) for moment in could),
    )


def taking_figures(taken: Iterable[Taken]) -> TakingFigures:
    """Sum up the suggestions that were taken."""
    all_taken = list(taken)
    return TakingFigures(
        taken=len(all_taken),
        next_ms=Percentiles.of([each.shown - each.pressed for each in all_taken if each.shown is not None]),
    )


def typing_table(editor: str, rows: Sequence[TypingFigures]) -> Table:
    """Return the table of one editor: a row for each kind of code."""
    headers = ("", "keys", "ghost", "right", "agreed", "flicker", "lost", "menu", "could", "beside")
    table = Table(*headers, title=f"Typed along in {editor}", box=SIMPLE_HEAD, padding=(0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        shares = (_share(row.shown, row.keys), _share(row.right, row.shown))
        counts = (row.agreed, row.flicker, row.lost, row.menu, row.could)
        table.add_row(row.kind, str(row.keys), *shares, *map(str, counts), _share(row.beside, row.could))
    return table


def taking_table(editor: str, figures: TakingFigures) -> Table:
    """Return the table of the suggestions that were taken in one editor."""
    table = Table(
        "taken", "a next one came", "p50 ms", "p95 ms", title=f"From Tab to the next one in {editor}", box=SIMPLE_HEAD
    )
    times = figures.next_ms
    table.add_row(str(figures.taken), str(times.count), f"{times.p50:.0f}", f"{times.p95:.0f}")
    return table


def _ghost(moment: Moment) -> str:
    return moment.screens[-1].ghost


def _agrees(moment: Moment) -> bool:
    """Return whether the ghost text at the key press had the key, and more than it in this line."""
    ghost = _first_line(moment.screens[0].ghost)
    return len(ghost) > 1 and ghost.startswith(moment.key)


def _after(moment: Moment) -> list[str]:
    """Return the ghost texts after the editor has drawn the key; until then it has that of the key press."""
    before = moment.screens[0].ghost
    return list(dropwhile(before.__eq__, (screen.ghost for screen in moment.screens))) or [before]


def _follows(moment: Moment, ghost: str) -> bool:
    return _first_line(ghost).startswith(_first_line(moment.screens[0].ghost)[1:])


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _share(part: int, whole: int) -> str:
    return f"{part} {part / whole:.0%}" if whole else "-"
