"""ast-grep on the edits of edits/, by rules written by hand: one file beside the edit, <edit>.ast-grep.yml.

ast-grep edits the outer of two places that lie in one another, so it runs again where that was so, as its users do.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.refactor.refactor_edits import FOLDER, Edit, Score, score
from lsp_server.documents.text_edit import TextEdit
from lsp_server.refactor.edit.file_edit import FileEdit

_RUNS = 3


@attrs.frozen
class Result:
    """What the rule of one edit did. A `reformatted` site is wrong in white space and commas before brackets alone."""

    score: Score
    reformatted: int


@attrs.frozen
class Match:
    """A place that a rule edits: UTF-8 bytes from the start of the file, and the text that takes their place."""

    path: str
    start: int
    end: int
    text: str

    def edit(self, data: bytes) -> TextEdit:
        """Return the edit of a file with these bytes."""
        start = len(data[: self.start].decode())
        return TextEdit(start, start + len(data[self.start : self.end].decode()), self.text)


@attrs.frozen
class AstGrep:
    """The command ast-grep."""

    program: str

    def version(self) -> str:
        """Return what `ast-grep --version` prints."""
        return subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()

    def run(self, edit: Edit) -> Result:
        """Return what the rule of an edit does to its file. An edit without a rule misses all sites.

        Raises subprocess.CalledProcessError if ast-grep cannot read the rule.
        """
        rule = rule_path(edit)
        if not rule.exists():
            return Result(Score(0, 0, len(edit.places), False), 0)
        runs: list[list[TextEdit]] = []
        text = edit.before
        for _ in range(_RUNS):
            found = self._found(rule, edit, text)
            runs.append(apart(found))
            text = FileEdit(edit.name, edits=tuple(runs[-1])).applied(text)
            if len(runs[-1]) == len(found):
                break
        done = chain(edit.before, runs)
        return Result(score(edit, FileEdit(edit.name, edits=tuple(done)), set()), _reformatted(edit, done))

    def matches(self, rule: Path, folder: str, paths: Sequence[str]) -> Iterator[Match]:
        """Yield the places that a rule would edit in files of a folder, as they are found.

        Raises subprocess.CalledProcessError if ast-grep cannot read the rule.
        """
        command = [self.program, "scan", "--rule", str(rule), "--json=stream", *paths]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                found = json.loads(line)
                if "replacement" in found:
                    offsets = found["replacementOffsets"]
                    yield Match(found["file"], offsets["start"], offsets["end"], found["replacement"])
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)

    def _found(self, rule: Path, edit: Edit, text: str) -> list[TextEdit]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, edit.name).write_text(text, encoding="utf-8")
            return [one.edit(text.encode()) for one in self.matches(rule, folder, [edit.name])]


def find(program: str) -> AstGrep | None:
    """Return the command by its name or path, None if it is not installed."""
    path = shutil.which(program)
    return AstGrep(str(Path(path).absolute())) if path else None


def rule_path(edit: Edit) -> Path:
    """Return where the rule of an edit is, if it has one."""
    return FOLDER / f"{edit.name}.ast-grep.yml"


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


def chain(text: str, runs: Sequence[Sequence[TextEdit]]) -> list[TextEdit]:
    """Return the edits of a text that do what the runs do, each of which edits the text that the one before it left.

    Edits without a character between them become one. The bytes are not counted: all are 0.
    """
    # Each character of the text as it becomes, and its offset in the text as it was, None if it was not there.
    letters: list[tuple[str, int | None]] = [(letter, offset) for offset, letter in enumerate(text)]
    for edits in runs:
        for edit in reversed(edits):
            letters[edit.start : edit.end] = [(letter, None) for letter in edit.text]
    done: list[TextEdit] = []
    start, new = 0, ""
    for letter, offset in [*letters, ("", len(text))]:
        if offset is None:
            new += letter
            continue
        if new or offset > start:
            done.append(TextEdit(start, offset, new))
        start, new = offset + 1, ""
    return done


def apart(edits: Sequence[TextEdit]) -> list[TextEdit]:
    """Return the edits that ast-grep makes in one run, in their order: of two that overlap, the first or outer one."""
    kept: list[TextEdit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
