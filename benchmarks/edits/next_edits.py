"""How often is the next edit of a model for edits what the author did next, and how often is it none of that?

Run it as `python benchmarks/edits/next_edits.py REPOSITORY... --model FILE.gguf`. From the history of each bare
repository come commits with several changes of one file: the first is made, and the next is asked for. An offer is
right if it makes lines as the author left them. Beside it: the rule alone, and commits in which nothing follows. No
code of a repository is kept.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import json
import random
import re
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import attrs
import typer
from lsprotocol import types

from engine.fill.draft_planner import PassTimer
from engine.fill.stream import StreamModel
from engine.models.load import load
from engine.protocol.messages import Filled
from engine.schedule.caches import ContextCache
from engine.schedule.job import Job
from engine.schedule.warm_up import time_passes
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.refactor.recent import recent_places
from lsp_server.requests.model_edits import rewrite_of
from lsp_server.suggest.region import regions_of
from lsp_server.suggest.rewritten import EditPrice, verdicts

_ENDINGS = (".py", ".go", ".rs", ".ts", ".js", ".java", ".cc", ".php")
_MOST_CHARACTERS, _MOST_LINES, _MOST_HUNKS = 60_000, 6, 6
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w+")
_CACHE_BYTES = 256 * 1024 * 1024


@attrs.frozen
class Hunk:
    """Lines of the text before, from 0, and those that take their place."""

    start: int
    end: int
    new: tuple[str, ...]


@attrs.frozen
class Case:
    """A file before a commit, and the commit's changes of it."""

    repository: str
    commit: str
    path: str
    text: str
    hunks: tuple[Hunk, ...]

    def after(self, hunks: Sequence[Hunk]) -> str:
        """Return the text after some of the changes."""
        lines = self.text.splitlines(keepends=True)
        for hunk in sorted(hunks, key=lambda one: -one.start):
            lines[hunk.start : hunk.end] = hunk.new
        return "".join(lines)


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def cases_of(repository: Path, most: int, follow_ups: range, seed: int) -> Iterator[Case]:
    """Yield cases of a repository whose number of changes is in a range, at random."""
    commits = _git(repository, "log", "--no-merges", "--format=%H", "-n", "3000", "HEAD").split()
    random.Random(seed).shuffle(commits)
    found = 0
    for commit in commits:
        if found == most:
            return
        names = _git(repository, "diff-tree", "--no-commit-id", "--name-only", "-r", "--diff-filter=M", commit).split(
            "\n"
        )
        paths = [name for name in names if name.endswith(_ENDINGS)]
        if not 1 <= len(paths) <= 5 or (len(follow_ups) == 1 and len([name for name in names if name]) > 1):
            continue
        for path in paths:
            if (case := _case(repository, commit, path)) is not None and len(case.hunks) in follow_ups:
                if len(case.hunks) > 1 and not _shares_name(case):
                    continue
                found += 1
                yield case
                break


def _shares_name(case: Case) -> bool:
    """Return whether a later change has a word that the first one put in or took away: else nothing follows from it."""
    lines = case.text.splitlines(keepends=True)
    old, new = (
        set(_WORD.findall("".join(text)))
        for text in (lines[case.hunks[0].start : case.hunks[0].end], case.hunks[0].new)
    )
    later = {
        word for hunk in case.hunks[1:] for word in _WORD.findall("".join((*lines[hunk.start : hunk.end], *hunk.new)))
    }
    return bool((old ^ new) & later)


def _case(repository: Path, commit: str, path: str) -> Case | None:
    try:
        text = _git(repository, "show", f"{commit}^:{path}")
        diff = _git(repository, "diff", "-U0", "--no-color", f"{commit}^", commit, "--", path)
    except subprocess.CalledProcessError:
        return None
    if len(text) > _MOST_CHARACTERS or "\ufffd" in text or "\r" in text or "\\ No newline" in diff:
        return None
    hunks: list[Hunk] = []
    parts = list(_HUNK.finditer(diff))
    for number, found in enumerate(parts):
        old = int(found[2] or 1)
        start = int(found[1]) - (old > 0)
        body = diff[found.end() : parts[number + 1].start() if number + 1 < len(parts) else len(diff)].split("\n")[1:]
        new = tuple(f"{line[1:]}\n" for line in body if line.startswith("+"))
        if max(old, len(new)) > _MOST_LINES:
            return None
        hunks.append(Hunk(start, start + old, new))
    is_code = bool(hunks) and any(line.strip() for line in hunks[0].new) and hunks[0].end > hunks[0].start
    return (
        Case(repository.parent.name, commit, path, text, tuple(hunks))
        if is_code and len(hunks) <= _MOST_HUNKS
        else None
    )


def snapshot_after_first(case: Case) -> Snapshot:
    """Return the document after the first change was made by hand."""
    documents = Documents(2.0, lambda _: None)
    uri, first = f"file:///project/{case.path}", case.hunks[0]
    documents.open(uri, "", 1, case.text)
    place = types.Range(types.Position(first.start, 0), types.Position(first.end, 0))
    change = types.TextDocumentContentChangePartial(place, "".join(first.new))
    documents.change(uri, 2, [change], types.PositionEncodingKind.Utf16)
    snapshot = documents.snapshot(uri)
    assert snapshot is not None
    assert snapshot.text == case.after(case.hunks[:1])
    return snapshot


def is_right(case: Case, before: str, after: str) -> bool:
    """Return whether an offer made a line as the author left it, and no other line."""
    left = Counter(case.after(case.hunks).splitlines())
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    come, gone = new - old, old - new
    return not (come - (left - old)) and not (gone - (old - left)) and bool(come or gone)


@attrs.define
class Outcome:
    """What was offered after a case's first change. reasons: of the changes that were not offered."""

    commit: str
    offered: str | None = None
    right: bool = False
    ms: float = 0.0
    tokens: int = 0
    passes: int = 0
    regions: int = 0
    reasons: list[str] = attrs.field(factory=list)
    likely: list[tuple[bool, float, float, str]] = attrs.field(factory=list)
    """Each change but for its price: whether it is right, its mean, its least, and what else is wrong with it."""


class Asker:
    """A model that rewrites in this process, without the wait for other work of a scheduler."""

    def __init__(self, model: Path, threads: int) -> None:
        loaded = load(str(model), threads=threads)
        assert isinstance(loaded, StreamModel)
        self._model, self._timer = loaded, PassTimer()
        time_passes(loaded)
        self._cache = ContextCache(loaded, _CACHE_BYTES)

    def ask(self, case: Case, price: EditPrice) -> Outcome:
        """Ask region by region for the next edit, as the language server does."""
        snapshot, outcome = snapshot_after_first(case), Outcome(case.commit)
        began = time.perf_counter()
        for region in regions_of(snapshot):
            if (fill := rewrite_of(snapshot, region)) is None:
                continue
            outcome.regions += 1
            try:
                job = Job(fill, self._model, self._cache, time.perf_counter())
            except Exception as error:
                outcome.reasons.append(type(error).__name__)
                continue
            filled = self._run(job)
            outcome.passes += filled.steps
            outcome.tokens += len(job.text) and len(filled.candidates[0].tokens)
            job.release(self._cache, 0)
            for one in verdicts(snapshot, region, filled.candidates[0], EditPrice(0, 0)):
                after = snapshot.text[: one.start] + one.text + snapshot.text[one.end :]
                right = is_right(case, snapshot.text, after)
                outcome.likely.append((right, one.mean, one.least, one.reason))
                reason = one.reason or ("" if one.mean >= price.mean and one.least >= price.least else "unsure")
                if reason:
                    outcome.reasons.append(reason)
                elif outcome.offered is None:
                    outcome.offered, outcome.right = one.text, right
                    outcome.ms = (time.perf_counter() - began) * 1000
        outcome.ms = outcome.ms or (time.perf_counter() - began) * 1000
        return outcome

    def _run(self, job: Job) -> Filled:
        while True:
            for index, result in enumerate(self._model.run(job.passes(64))):
                job.absorb(index, result, 1.0, 1.0)
            if job.done(self._timer):
                return job.filled()


def by_rule(case: Case) -> Outcome:
    """Return what the rule alone offers first."""
    snapshot, outcome = snapshot_after_first(case), Outcome(case.commit)
    began = time.perf_counter()
    found = recent_places(snapshot.edits.all, snapshot.language.id, case.path)
    outcome.ms = (time.perf_counter() - began) * 1000
    places = found.one_by_one.places if found is not None and found.recent.is_telling else ()
    if places:
        at = snapshot.edits.all[-1].start
        first = next((one for one in places if one.start >= at), places[0])
        outcome.offered, outcome.right = first.text, is_right(case, snapshot.text, first.applied(snapshot.text))
    return outcome


def figures(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return a line of the table."""
    offered = [one for one in outcomes if one.offered is not None]
    right, tokens, passes = (
        sum(one.right for one in offered),
        sum(o.tokens for o in outcomes),
        sum(o.passes for o in outcomes),
    )
    ms = statistics.median(one.ms for one in outcomes) if outcomes else 0
    speed = f"{tokens / passes:.1f}" if passes else "-"
    return f"{name:32} {len(outcomes):5} {len(offered):7} {right:5} {len(offered) - right:5} {speed:>11} {ms:7.0f}"


def main(
    repositories: list[Path],
    model: Annotated[Path, typer.Option(help="A GGUF of a model for edits.")],
    each: Annotated[int, typer.Option(help="Commits of each repository, with and without a follow-up.")] = 4,
    seed: Annotated[int, typer.Option()] = 51,
    threads: Annotated[int, typer.Option()] = 2,
    out: Annotated[Path | None, typer.Option(help="Where each outcome goes, as JSON lines.")] = None,
) -> None:
    """Print how many offers were right, wrong, and how fast they came."""
    asker, price = Asker(model, threads), EditPrice()
    typer.echo(f"{'':32} cases offered right wrong tokens/pass median ms")
    for name, range_ in (("with a follow-up", range(2, _MOST_HUNKS + 1)), ("without one", range(1, 2))):
        cases = [case for one in repositories for case in cases_of(one, each, range_, seed)]
        typer.echo(figures(f"{name}: the rule alone", [by_rule(case) for case in cases]))
        outcomes = [asker.ask(case, price) for case in cases]
        typer.echo(figures(f"{name}: the model alone", outcomes))
        typer.echo(f"  not offered: {dict(Counter(reason for one in outcomes for reason in one.reasons))}")
        if out is not None:
            with out.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps({"kind": name, **attrs.asdict(one)}) + "\n" for one in outcomes)


if __name__ == "__main__":
    typer.run(main)
