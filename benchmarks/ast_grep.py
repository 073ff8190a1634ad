"""ast-grep on the edits of benchmarks/edits, by rules written by hand: one file beside the edit, <edit>.ast-grep.yml.

ast-grep edits the outer of two places that lie in one another, so it runs again where that was so, as its users do.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
from refactor_edits import FOLDER, Edit, Score, score

from lsp_server.refactor.file_edit import FileEdit, TextEdit

_RUNS = 3


@attrs.frozen
class Result:
    """What the rule of one edit did. `reformatted` sites differ from the expected text by white space and commas only."""

    score: Score
    reformatted: int


@attrs.frozen
class AstGrep:
    """The command ast-grep."""

    program: str

    def version(self) -> str:
        """Return what `ast-grep --version` prints."""
        return subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def run(self, edit: Edit) -> Result | None:
        """Return what the rule of an edit does to its file, None if it has no rule.

        Raises subprocess.CalledProcessError if ast-grep cannot read the rule.
        """
        rule = rule_path(edit)
        if not rule.exists():
            return None
        done: list[TextEdit] = []
        for _ in range(_RUNS):
            found = self._found(rule, edit, FileEdit(edit.name, edits=tuple(done)).applied(edit.before))
            outer = _apart(found)
            done = compose(done, outer)
            if len(outer) == len(found):
                break
        edits = FileEdit(edit.name, edits=tuple(done))
        return Result(score(edit, edits, set()), _reformatted(edit, done))

    def _found(self, rule: Path, edit: Edit, text: str) -> list[TextEdit]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, edit.name).write_text(text, encoding="utf-8")
            command = [self.program, "scan", "--rule", str(rule), "--json=compact", edit.name]
            output = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
        data = text.encode()
        edits: list[TextEdit] = []
        for match in json.loads(output):
            if "replacement" in match:
                start, end = match["replacementOffsets"]["start"], match["replacementOffsets"]["end"]
                before, old = data[:start].decode(), data[start:end].decode()
                edits.append(TextEdit(start, end, len(before), len(before) + len(old), match["replacement"]))
        return edits


def find(program: str) -> AstGrep | None:
    """Return the command by its name or path, None if it is not installed."""
    path = shutil.which(program)
    return AstGrep(path) if path else None


def rule_path(edit: Edit) -> Path:
    """Return where the rule of an edit is, if it has one."""
    return FOLDER / f"{edit.name}.ast-grep.yml"


def compose(first: Sequence[TextEdit], second: Sequence[TextEdit]) -> list[TextEdit]:
    """Return the edits that do what `first` does and then `second`, whose places are those after `first`.

    The bytes of the result are not counted: all are 0.
    """
    done = [TextEdit(0, 0, edit.start, edit.end, edit.text) for edit in first]
    for edit in sorted(second, key=lambda one: one.start, reverse=True):
        done = _with(done, edit)
    return done


def _with(done: list[TextEdit], edit: TextEdit) -> list[TextEdit]:
    before: list[TextEdit] = []
    after: list[TextEdit] = []
    text, grown = edit.text, 0
    start = end = None
    for one in done:
        left = one.start + grown
        right = left + len(one.text)
        grown += len(one.text) - (one.end - one.start)
        if right < edit.start or (right == edit.start and left < right):
            before.append(one)
        elif left > edit.end or (left == edit.end and left < right):
            after.append(one)
        else:
            if left <= edit.start:
                text, start = one.text[: edit.start - left] + text, one.start
            if right >= edit.end:
                text, end = text + one.text[edit.end - left :], one.end
    shift = sum(len(one.text) - (one.end - one.start) for one in before)
    inside = sum(len(one.text) - (one.end - one.start) for one in done if one not in before and one not in after)
    start = edit.start - shift if start is None else start
    end = edit.end - shift - inside if end is None else end
    return [*before, TextEdit(0, 0, start, end, text), *after]


def _apart(edits: Sequence[TextEdit]) -> list[TextEdit]:
    kept: list[TextEdit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def _reformatted(edit: Edit, done: Sequence[TextEdit]) -> int:
    """Count the sites that are wrong, and right without white space and the comma before a bracket."""
    count = 0
    for site in edit.sites:
        mine = [one for one in done if one.start < site.end and one.end > site.start]
        if site.is_import or not mine or mine[0].start < site.start or mine[-1].end > site.end:
            continue
        parts, position = list[str](), site.start
        for one in mine:
            parts += [edit.before[position : one.start], one.text]
            position = one.end
        text = "".join([*parts, edit.before[position : site.end]])
        count += text != site.text and _bare(text) == _bare(site.text)
    return count


def _bare(text: str) -> str:
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s", "", text))
