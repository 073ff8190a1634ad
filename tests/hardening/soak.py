"""All parts one after the other, with progress, and the table at the end. `make soak` runs this for an hour.

The exit status is 1 if anything was lost. `--docs` puts the table into docs/reliability.md.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import attrs

from hardening import (
    fuzz,
    http_clients,
    kills,
    long_editing,
    memory,
    parsers,
    real_editors,
    strangers,
    typists_at_once,
)
from hardening.work import Part, Row, Work

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
OUT = ROOT / "benchmarks" / "out"
HOUR_S = 3600.0
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
HEAD = "| tried | times | lost | seen |\n| --- | --- | --- | --- |\n"


@attrs.frozen
class Planned:
    """A part, and the minutes of the hour that it gets."""

    name: str
    part: Part
    minutes: float


PLAN = (
    Planned("editing", long_editing.soak, 19),
    Planned("kills", kills.soak, 6),
    Planned("fuzz", fuzz.soak, 6),
    Planned("http", http_clients.soak, 3),
    Planned("parsers", parsers.soak, 3),
    Planned("strangers", strangers.soak, 0.2),
    Planned("memory", memory.soak, 9),
    Planned("typists", typists_at_once.soak, 4.8),
    Planned("real editors", real_editors.soak, 9),
)


def main() -> None:
    """Run the parts that were asked for. Exit with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long all parts may take together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", nargs="*", choices=[each.name for each in PLAN], default=[])
    parser.add_argument("--docs", action="store_true", help="put the table into docs/reliability.md")
    chosen = parser.parse_args()
    plan = [each for each in PLAN if not chosen.only or each.name in chosen.only]
    rows = _run(plan, chosen.minutes * 60, chosen.seed)
    table = HEAD + "\n".join(row.markdown for row in rows) + "\n"
    print(f"\n{table}\nseed {chosen.seed}, {chosen.minutes:g} minutes")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "soak.md").write_text(table, "utf-8")
    if chosen.docs:
        write_table(PAGE, f"Seed {chosen.seed}, {chosen.minutes:g} minutes, {time.strftime('%Y-%m-%d')}.\n\n{table}")
    sys.exit(any(row.lost for row in rows))


def _run(plan: list[Planned], seconds: float, seed: int) -> list[Row]:
    # An engine starts in its runtime folder, where a relative path would lead to another tree.
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    rows, share = list[Row](), seconds / HOUR_S
    total = sum(each.minutes for each in plan)
    for number, each in enumerate(plan, 1):
        with tempfile.TemporaryDirectory(prefix="midspan-soak-") as folder:
            for name in ("RUNTIME", "DATA", "CONFIG"):
                os.environ[f"MIDSPAN_{name}_DIR"] = folder

            def say(line: str, head: str = f"[{number}/{len(plan)}] {each.name}") -> None:
                print(f"{time.strftime('%H:%M:%S')} {head}: {line}", flush=True)

            say(f"for {seconds * each.minutes / total / 60:.1f} minutes at most, seed {seed}")
            work = Work(Path(folder).resolve(), seed, seconds * each.minutes / total, share, say)
            try:
                found = each.part(work)
            except Exception as error:  # One part that fails must not cost the others.
                found = [Row(each.name, 0, [f"the part itself failed: {type(error).__name__}: {error}"])]
            rows += found
            for row in found:
                say(f"{row.tried}: {row.times:,} times, lost: {'; '.join(row.lost) or 'nothing'}. {row.seen}")
    return rows


def write_table(page: Path, text: str) -> None:
    """Replace what is between the marks of a page."""
    old = page.read_text("utf-8")
    before, after = old[: old.index(BEGIN)], old[old.index(END) :]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{after}", "utf-8")


if __name__ == "__main__":
    main()
