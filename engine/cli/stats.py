"""`midspan stats`: how many suggestions were shown, accepted and dismissed, counted on this machine only."""

import json
from enum import StrEnum
from typing import Annotated, get_args

import attrs
import typer
from rich.table import Table

from engine.cli.console import AsJson, out
from engine.protocol.messages import SourceName
from engine.usage_file import EARLIER, StatisticsFile, Tallies, Tally, by_day, by_language, statistics_path


class Grouping(StrEnum):
    """What each line of the table counts."""

    LANGUAGE = "language"
    DAY = "day"


def stats(
    by: Annotated[Grouping, typer.Option(help="One line for each language, or for each day.")] = Grouping.LANGUAGE,
    reset: Annotated[bool, typer.Option("--reset", help="Delete all counts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how many suggestions were shown, accepted and dismissed. The counts stay on this machine."""
    file = StatisticsFile(statistics_path())
    if reset:
        file.reset()
    tallies = file.read()
    if as_json:
        typer.echo(json.dumps(_as_json(tallies, file)))
    elif reset:
        out.print(f"all counts are deleted from {file.path}", soft_wrap=True)
    elif not tallies:
        out.print(
            f"nothing has been counted yet; suggestions in your editor are counted in {file.path}", soft_wrap=True
        )
    else:
        out.print(_table(tallies, by))
        out.print(_by_source(_total(tallies)), soft_wrap=True)
        out.print(f"counted since {_first_day(tallies)} in {file.path}", style="dim", soft_wrap=True)


def _as_json(tallies: Tallies, file: StatisticsFile) -> dict[str, object]:
    return {
        "file": str(file.path),
        "total": attrs.asdict(_total(tallies)),
        "languages": {name: attrs.asdict(tally) for name, tally in by_language(tallies).items()},
        "days": {day: attrs.asdict(tally) for day, tally in sorted(by_day(tallies).items())},
    }


def _table(tallies: Tallies, by: Grouping) -> Table:
    if by is Grouping.DAY:
        rows = sorted(by_day(tallies).items(), key=lambda row: (row[0] != EARLIER, row[0]))
    else:
        rows = sorted(by_language(tallies).items(), key=lambda row: -row[1].shown)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=True)
    total = _total(tallies)
    table.add_column(by.value, "all", style="cyan", footer_style="bold")
    columns = zip(("shown", "accepted", "", "in part", "dismissed", "characters kept"), _cells(total), strict=True)
    for header, footer in columns:
        table.add_column(header, footer, justify="right", footer_style="bold")
    for name, tally in rows:
        table.add_row(name, *_cells(tally))
    return table


def _cells(tally: Tally) -> list[str]:
    share = f"{tally.accepted / tally.shown:.0%}" if tally.shown else ""
    numbers = (tally.shown, tally.accepted, share, tally.partial, tally.dismissed, tally.characters)
    return [str(number) for number in numbers]


def _by_source(total: Tally) -> str:
    """Return one line: how many suggestions of each source were accepted, of those that were shown."""
    parts = ((name, total.of_source(name)) for name in get_args(SourceName))
    return "accepted by source: " + ", ".join(f"{name} {each.accepted} of {each.shown} shown" for name, each in parts)


def _total(tallies: Tallies) -> Tally:
    return sum(tallies.values(), Tally())


def _first_day(tallies: Tallies) -> str:
    days = sorted(row.day for row in tallies if row.day != EARLIER)
    return f"before {days[0]}" if days and EARLIER in by_day(tallies) else (days or ["long ago"])[0]
