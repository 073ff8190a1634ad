"""How often is the next edit of a model for edits what the author did next, and how often is it none of that?

Run it as `python benchmarks/edits/next_edits.py REPOSITORY... --model FILE.gguf`. From the history of each bare
repository come commits with several changes of one file: the first is made, and the next is asked for. An offer is
right if it makes lines as the author left them. Beside it: the rule alone, commits in which nothing follows, and how
often an offer brings the text nearer to what it was before the change. No code of a repository is kept.
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

from benchmarks.edits.rewriting_speed import BUDGET_MS, Rewriter, lines_of
from engine.errors import MidspanError
from engine.protocol.messages import Snippet
from lsp_server.documents.store import Documents, Snapshot
from lsp_server.refactor.recent import recent_places
from lsp_server.refactor.related_code import EditedFile, related_code
from lsp_server.refactor.search import Target
from lsp_server.requests.model_edits import rewrite_of, snippets_of
from lsp_server.suggest.region import names_of, regions_of, used_in
from lsp_server.suggest.rewritten import EditPrice, judged
from lsp_server.workspace.files import distance_from

_ENDINGS = (".py", ".go", ".rs", ".ts", ".js", ".java", ".cc", ".php")
_MOST_CHARACTERS, _MOST_LINES, _MOST_HUNKS = 60_000, 6, 6
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w+")
_MOST_RELATED_FILES = 40


@attrs.frozen
class Hunk:
    """Lines of the text before, from 0, and those that take their place."""

    start: int
    end: int
    new: tuple[str, ...]


@attrs.frozen
class Case:
    """A file before a commit, and the commit's changes of it."""

    repository: Path
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


def cases_of(repository: Path, follow_ups: range, seed: int) -> Iterator[Case]:
    """Yield cases of a repository whose number of changes is in a range, at random."""
    commits = _git(repository, "log", "--no-merges", "--format=%H", "-n", "3000", "HEAD").split()
    random.Random(seed).shuffle(commits)
    for commit in commits:
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
                yield case
                break


def spread(repositories: Sequence[Path], most: int, follow_ups: range, seed: int) -> list[Case]:
    """Return so many cases of several repositories, as evenly as they have them."""
    left = [cases_of(one, follow_ups, seed) for one in repositories]
    found: list[Case] = []
    while left and len(found) < most:
        for one in [*left]:
            case = next(one, None)
            if case is None:
                left.remove(one)
            else:
                found.append(case)
    return found[:most]


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
    return Case(repository, commit, path, text, tuple(hunks)) if is_code and len(hunks) <= _MOST_HUNKS else None


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


def is_undoing(case: Case, before: str, after: str) -> bool:
    """Return whether an offer brings a text nearer to what it was before the first change."""
    first, now, then = (Counter(text.splitlines()) for text in (case.text, before, after))
    return ((first - then) + (then - first)).total() < ((first - now) + (now - first)).total()


def related_of(case: Case, snapshot: Snapshot) -> list[Snippet]:
    """Return the code of other files that the model reads; of those with one of the words, as git finds them."""
    names, used = names_of(snapshot, snapshot.edits.all[-1]), used_in(snapshot.edits.all[-1])
    words = [argument for word in sorted(names | used) if len(word) > 1 for argument in ("-e", word)]
    commit, ending = f"{case.commit}^", f"*{Path(case.path).suffix}"
    try:
        paths = _git(case.repository, "grep", "-lwF", *words, commit, "--", ending).split() if words else []
    except subprocess.CalledProcessError:  # no file has one
        paths = []
    near = sorted((one.partition(":")[2] for one in paths), key=distance_from(case.path))
    texts = ((one, _git(case.repository, "show", f"{commit}:{one}")) for one in near[:_MOST_RELATED_FILES])
    edited = EditedFile(snapshot.text, "", case.path, "", tuple(sorted(names)), tuple(sorted(used)))
    return snippets_of(related_code(edited, [Target("", one, text) for one, text in texts if one != case.path]))


@attrs.define
class Outcome:
    """What was offered after a case's first change. reasons: of the changes that were not offered."""

    commit: str
    offered: str | None = None
    right: bool = False
    undoes: bool = False
    ms: float = 0.0
    tokens: int = 0
    passes: int = 0
    regions: int = 0
    related: int = 0
    reasons: list[str] = attrs.field(factory=list)
    likely: list[tuple[bool, float, float, str]] = attrs.field(factory=list)
    """Each change but for its price: whether it is right, its mean, its least, and what else is wrong with it."""


class Asker:
    """A model for edits, asked as the language server asks it. with_related: whether it reads code of other files."""

    def __init__(self, rewriter: Rewriter, price: EditPrice, with_related: bool) -> None:
        self._rewriter, self._price, self._with_related = rewriter, price, with_related

    def ask(self, case: Case) -> Outcome:
        """Ask region by region for the next edit, as the language server does."""
        snapshot, outcome = snapshot_after_first(case), Outcome(case.commit)
        related = related_of(case, snapshot) if self._with_related else []
        outcome.related = len(related)
        began = time.perf_counter()
        for region in regions_of(snapshot):
            if (fill := rewrite_of(snapshot, region, related)) is None:
                continue
            outcome.regions += 1
            try:
                filled, tokens = self._rewriter.run(attrs.evolve(fill, budget_ms=BUDGET_MS))
            except MidspanError as error:
                outcome.reasons.append(type(error).__name__)
                continue
            outcome.passes += filled.steps
            outcome.tokens += tokens
            for one in judged(snapshot, region, filled.candidates[0], EditPrice(0, 0)):
                after = snapshot.text[: one.start] + one.text + snapshot.text[one.end :]
                right = is_right(case, snapshot.text, after)
                outcome.likely.append((right, one.mean, one.least, one.reason))
                sure = one.mean >= self._price.mean and one.least >= self._price.least
                reason = one.reason or ("" if sure else "unsure")
                if reason:
                    outcome.reasons.append(reason)
                elif outcome.offered is None:
                    outcome.offered, outcome.right = one.text, right
                    outcome.undoes = is_undoing(case, snapshot.text, after)
                    outcome.ms = (time.perf_counter() - began) * 1000
        outcome.ms = outcome.ms or (time.perf_counter() - began) * 1000
        return outcome


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
        after = first.applied(snapshot.text)
        outcome.offered, outcome.right = first.text, is_right(case, snapshot.text, after)
        outcome.undoes = is_undoing(case, snapshot.text, after)
    return outcome


def figures(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return a line of the table."""
    offered = [one for one in outcomes if one.offered is not None]
    right, undone = sum(one.right for one in offered), sum(one.undoes for one in offered)
    tokens, passes = sum(one.tokens for one in outcomes), sum(one.passes for one in outcomes)
    ms = statistics.median(one.ms for one in outcomes) if outcomes else 0
    speed = f"{tokens / passes:.1f}" if passes else "-"
    counts = f"{len(outcomes):5} {len(offered):7} {right:5} {len(offered) - right:5} {undone:6}"
    return f"{name:34} {counts} {speed:>11} {ms:7.0f}"


def main(
    repositories: list[Path],
    model: Annotated[Path, typer.Option(help="A GGUF of a model for edits.")],
    commits: Annotated[int, typer.Option(help="Commits with a follow-up, and as many without.")] = 60,
    more: Annotated[int, typer.Option(help="Further commits without one, for what takes the change back.")] = 80,
    related: Annotated[bool, typer.Option(help="Whether the model reads code of other files.")] = True,
    speed: Annotated[bool, typer.Option(help="Whether to time a region of 40 lines, too.")] = True,
    seed: Annotated[int, typer.Option()] = 51,
    threads: Annotated[int, typer.Option()] = 2,
    out: Annotated[Path | None, typer.Option(help="Where each outcome goes, as JSON lines.")] = None,
) -> None:
    """Print how many offers were right, wrong, and taken back what was done; then how fast a region is rewritten."""
    rewriter = Rewriter(model, threads)
    asker, asked = Asker(rewriter, EditPrice(), related), list[Outcome]()
    typer.echo(f"{'':34} cases offered right wrong undone tokens/pass median ms")
    without = spread(repositories, commits + more, range(1, 2), seed)
    kinds = {
        "with a follow-up": spread(repositories, commits, range(2, _MOST_HUNKS + 1), seed),
        "without one": without[:commits],
        "more without one": without[commits:],
    }
    for name, cases in kinds.items():
        rule, outcomes = [by_rule(case) for case in cases], [asker.ask(case) for case in cases]
        both = [first if first.offered is not None else second for first, second in zip(rule, outcomes, strict=True)]
        for by, found in (("the rule", rule), ("the model", outcomes), ("both", both)):
            typer.echo(figures(f"{name}: {by}", found))
        typer.echo(f"  not offered: {dict(Counter(reason for one in outcomes for reason in one.reasons))}")
        typer.echo(f"  with code of other files: {sum(one.related > 0 for one in outcomes)}")
        asked += outcomes
        if out is not None:
            with out.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps({"kind": name, **attrs.asdict(one)}) + "\n" for one in outcomes)
    typer.echo(f"takes back what was just done: {sum(one.undoes for one in asked)} of {len(asked)}")
    if speed:
        for line in lines_of(rewriter, model, threads):
            typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
