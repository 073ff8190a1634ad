"""How exact is "Repeat my edit"? Rules are learned from one or two sites of each edit in benchmarks/refactor/edits.

The sites are drawn at random, and the rule is applied to the whole file. An edit counts as right if its text is the
expected one, to the character. Run `python benchmarks/refactor/refactor.py`; --edit NAME shows what one edit does.

Where ast-grep is installed (`pip install -c constraints.txt ast-grep-cli`), the last columns have what it does by
rules written by hand.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import argparse
import random
from collections.abc import Sequence

import attrs
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.refactor.ast_grep import AstGrep, Result, find, rule_path
from benchmarks.refactor.refactor_edits import Edit, Score, after_example, read_edits, read_unseen, score
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import SURE


@attrs.frozen
class Total:
    """The sum of some scores."""

    right: int
    wrong: int
    missed: int
    files: int
    whole: int
    imports_right: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def total(scores: Sequence[Score]) -> Total:
    """Add scores up."""
    return Total(
        sum(one.right for one in scores),
        sum(one.wrong for one in scores),
        sum(one.missed for one in scores),
        len(scores),
        sum(one.is_whole for one in scores),
        sum(one.imports_right and one.is_whole for one in scores),
    )


def run(edit: Edit, chosen: Sequence[int]) -> Score:
    """Learn from the chosen sites and apply the rules to the whole file."""
    try:
        rules = learn([edit.example(place) for place in chosen], edit.language)
    except NoRule:
        return Score(0, 0, len(edit.places) - len(chosen), False)
    return score(edit, rewrite(rules, edit.name, edit.before, edit.language, beside=SURE), set(chosen))


def draws(edit: Edit, count: int, times: int, seed: int) -> list[Score]:
    """Return the scores of `times` random draws of `count` examples."""
    source = random.Random(f"{seed} {edit.name} {count}")
    return [run(edit, source.sample(edit.places, min(count, len(edit.places) - 1))) for _ in range(times)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8, help="random draws for each edit and number of examples")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edit", help="the name of one edit, to see its result from each site alone")
    parser.add_argument(
        "--unseen", action="store_true", help="the edits of benchmarks/refactor/unseen, each by its first site"
    )
    parser.add_argument("--ast-grep", default="ast-grep", help="the command, if it is not on PATH")
    arguments = parser.parse_args()
    if arguments.unseen:
        _print_unseen([one for one in read_unseen() if one.name.startswith(arguments.edit or "")], bool(arguments.edit))
        return 0
    edits = read_edits()
    if arguments.edit:
        for edit in (one for one in edits if one.name.startswith(arguments.edit)):
            _show(edit)
        return 0
    tool = find(arguments.ast_grep)
    columns = ["edit", "sites", "1: precision", "recall", "2: precision", "recall", "imports"]
    table = Table(*columns, *(["ast-grep: precision", "recall"] if tool else []), box=SIMPLE_HEAD)
    all_scores: dict[int, list[Score]] = {1: [], 2: []}
    results: list[Result] = []
    for edit in edits:
        cells = [edit.name, str(len(edit.places))]
        imports = True
        for count, scores in all_scores.items():
            drawn = draws(edit, count, arguments.draws, arguments.seed)
            scores += drawn
            imports = imports and all(one.imports_right for one in drawn if one.is_whole)
            sums = total(drawn)
            cells += [f"{sums.precision:.0%}", f"{sums.recall:.0%}"]
        cells.append("right" if imports else "wrong")
        if tool:
            results.append(tool.run(edit))
            sums = total([results[-1].score])
            cells += [f"{sums.precision:.0%}", f"{sums.recall:.0%}"]
        table.add_row(*cells)
    totals = [total(scores) for scores in all_scores.values()]
    by_hand = total([one.score for one in results])
    table.add_section()
    table.add_row(
        f"{len(edits)} edits",
        str(sum(len(edit.places) for edit in edits)),
        *(f"{value:.1%}" for one in totals for value in (one.precision, one.recall)),
        f"{sum(one.imports_right for one in totals)} of {sum(one.whole for one in totals)}",
        *([f"{by_hand.precision:.1%}", f"{by_hand.recall:.1%}"] if tool else []),
    )
    Console(width=130).print(table)
    for count, one in zip(all_scores, totals, strict=True):
        print(f"{count} example{'s' * (count > 1)}: all sites right in {one.whole / one.files:.1%} of the draws")
    if tool:
        _print_ast_grep(tool, edits, results)
    else:
        print(f"no column for ast-grep: {arguments.ast_grep} is not installed; --ast-grep PATH says where it is")
    return 0


def run_unseen(edit: Edit, place: int) -> tuple[Score, FileEdit | None]:
    """Learn from one site and apply the rule to the text with that site edited, as --since does."""
    try:
        rules = learn([edit.example(place)], edit.language)
    except NoRule:
        return Score(0, 0, len(edit.places) - 1, False), None
    rest = after_example(edit, place)
    done = rewrite(rules, edit.name, rest.before, edit.language, beside=SURE)
    return score(rest, done, set()), done


def _print_unseen(edits: Sequence[Edit], is_shown: bool) -> None:
    table = Table("edit", "sites", "right", "wrong", "missed", "rule", "lines missed in silence", box=SIMPLE_HEAD)
    scores: list[Score] = []
    for edit in edits:
        one, done = run_unseen(edit, edit.places[0])
        scores.append(one)
        counts = (len(edit.places) - 1, one.right, one.wrong, one.missed)
        table.add_row(edit.name, *map(str, counts), "" if done else "no rule", " ".join(map(str, one.silent)))
        if is_shown and done is not None:
            rest = after_example(edit, edit.places[0])
            print(done.applied(rest.before))
            print([(one.span.line + 1, one.reason) for one in done.left_out])
    sums = total(scores)
    silent = sum(len(one.silent) for one in scores)
    table.add_row(
        "all", str(sums.right + sums.missed), str(sums.right), str(sums.wrong), str(sums.missed), "", str(silent)
    )
    Console(width=130).print(table)
    print(f"one example: precision {sums.precision:.1%}, recall {sums.recall:.1%}, missed in silence {silent}")


def _print_ast_grep(tool: AstGrep, edits: Sequence[Edit], results: Sequence[Result]) -> None:
    with_imports = [done for edit, done in zip(edits, results, strict=True) if any(one.is_import for one in edit.sites)]
    print(
        f"{tool.version()}: rules for {sum(rule_path(edit).exists() for edit in edits)} of {len(edits)} edits, "
        f"all sites right in {sum(one.score.is_whole for one in results)}, "
        f"imports right in {sum(one.score.imports_right for one in with_imports)} of the {len(with_imports)} "
        f"that change some; wrong sites that differ in white space alone: {sum(one.reformatted for one in results)}"
    )


def _show(edit: Edit) -> None:
    for place in edit.places:
        print(f"== {edit.name}, from the site {edit.sites[place].text.strip()!r}")
        try:
            rules = learn([edit.example(place)], edit.language)
        except NoRule as error:
            print(error)
            continue
        done = rewrite(rules, edit.name, edit.before, edit.language, beside=SURE)
        print(run(edit, [place]), [(one.span.line + 1, one.reason) for one in done.left_out])
        print(done.applied(edit.before))


if __name__ == "__main__":
    sys.exit(main())
