"""The edits of benchmarks/refactor/edits and benchmarks/refactor/unseen, in the form of diffs with all their lines.

A line begins with " " (it stays), "-" (it is there before the edit), "+" (after it) or "?" (it stays, and must be
listed as left out). Each run of changed lines is a site; a new one begins where "-" follows "+". Sites of imports are
no examples: they go along with each one. In `unseen` a file has many edits, each after a line "@ NAME".
"""

import re
from collections.abc import Iterable
from pathlib import Path

import attrs

from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.learn.example import Example

FOLDER = Path(__file__).parent / "edits"
UNSEEN = Path(__file__).parent / "unseen"
_IMPORT = re.compile(r"^(import\b|from\b.*\bimport\b|\t(\w+ )?\"[\w./-]+\"$|\)$|use\b|using\b|#include\b|$)")


@attrs.frozen
class Site:
    """Changed lines: characters of the text before, and the lines that take their place."""

    start: int
    end: int
    text: str
    is_import: bool


@attrs.frozen
class Edit:
    """One edit: a text before, and its sites in their order. `traps` are where the lines begin that must be listed."""

    name: str
    language: Language
    before: str
    sites: tuple[Site, ...]
    traps: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """The indices of the sites that are no imports."""
        return [index for index, site in enumerate(self.sites) if not site.is_import]

    def with_sites(self, chosen: set[int]) -> str:
        """Return the text with some sites edited."""
        parts: list[str] = []
        position = 0
        for index, site in enumerate(self.sites):
            if index in chosen:
                parts += [self.before[position : site.start], site.text]
                position = site.end
        return "".join([*parts, self.before[position:]])

    def example(self, place: int) -> Example:
        """Return the edit of one site, with all imports."""
        imports = {index for index, site in enumerate(self.sites) if site.is_import}
        return Example(self.before, self.with_sites({place, *imports}))


@attrs.frozen
class Score:
    """What an edit did to the sites that were no examples. Imports count only where all of these are right.

    `silent` has the lines, from 1, of sites and traps that were neither edited nor listed as left out.
    """

    right: int
    wrong: int
    missed: int
    imports_right: bool
    silent: tuple[int, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether every site is right, so that the imports must be right too."""
        return not self.wrong and not self.missed


def read_edits() -> list[Edit]:
    """Return all edits, by name."""
    return [
        _read(path.name.removesuffix(".diff"), path.read_text(encoding="utf-8").splitlines(keepends=True))
        for path in sorted(FOLDER.glob("*.diff"))
    ]


def read_unseen() -> list[Edit]:
    """Return the edits that were written before anything was done for them, by language."""
    edits: list[Edit] = []
    for path in sorted(UNSEEN.glob("*.diffs")):
        for part in re.split(r"^@ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, *lines = part.splitlines(keepends=True)
            edits.append(_read(name.strip(), lines))
    return edits


def after_example(edit: Edit, place: int) -> Edit:
    """Return what is left of an edit once one place and its imports are edited: the text that --since finds."""
    chosen = {place, *(index for index, site in enumerate(edit.sites) if site.is_import)}
    starts = [site for index, site in enumerate(edit.sites) if index in chosen]

    def moved(offset: int) -> int:
        return offset + sum(len(site.text) - (site.end - site.start) for site in starts if site.start < offset)

    left = [
        attrs.evolve(site, start=moved(site.start), end=moved(site.end))
        for index, site in enumerate(edit.sites)
        if index not in chosen
    ]
    return attrs.evolve(
        edit, before=edit.with_sites(chosen), sites=tuple(left), traps=tuple(moved(start) for start in edit.traps)
    )


def score(edit: Edit, done: FileEdit, examples: set[int]) -> Score:
    """Compare the edits of a file with the expected ones. `examples` are the sites that the rule was made from."""
    right = wrong = missed = 0
    left = list(done.edits)
    imports_right = True
    for index, site in sorted(enumerate(edit.sites), key=lambda pair: pair[1].is_import):
        mine = [one for one in left if _touches(edit.before, one, site)]
        left = [one for one in left if one not in mine]
        is_right = bool(mine) and _is_right(edit.before, site, mine)
        if site.is_import:
            imports_right = imports_right and is_right
        elif index not in examples:
            right += is_right
            wrong += bool(mine) and not is_right
            missed += not is_right
    outside = [one for one in left if not _IMPORT.match(one.text.strip("\r\n") or "import x")]
    silent = _silent(edit, done, examples)
    return Score(right, wrong + len(outside), missed, imports_right and len(outside) == len(left), silent)


def _silent(edit: Edit, done: FileEdit, examples: set[int]) -> tuple[int, ...]:
    """Return the lines of sites and traps that are neither edited nor listed."""
    parts = [
        (site.start, site.end) for index, site in enumerate(edit.sites) if index not in examples and not site.is_import
    ]
    parts += [(start, edit.before.find("\n", start) + 1) for start in edit.traps]
    said = [(one.span.start, one.span.end) for one in done.left_out] + [(one.start, one.end) for one in done.edits]
    silent = [start for start, end in parts if not any(low < end and high >= start for low, high in said)]
    return tuple(edit.before.count("\n", 0, start) + 1 for start in sorted(silent))


def _touches(before: str, edit: TextEdit, site: Site) -> bool:
    if site.start == site.end:
        # New lines may be put in at the end of the line above, or before the first word of the line below.
        return edit.start == site.start - 1 or (
            edit.start >= site.start and not before[site.start : edit.start].strip()
        )
    return edit.start < site.end and (edit.end > site.start or edit.start >= site.start)


def _is_right(before: str, site: Site, edits: list[TextEdit]) -> bool:
    start = min(site.start, before.rfind("\n", 0, edits[0].start) + 1)
    stop = before.find("\n", max(site.end - 1, edits[-1].end - 1))
    end = max(site.end, stop + 1 if stop >= 0 else len(before))
    parts, position = list[str](), start
    for edit in edits:
        parts += [before[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, before[position:end]]) == before[start : site.start] + site.text + before[site.end : end]


def _read(name: str, lines: Iterable[str]) -> Edit:
    before: list[str] = []
    traps: list[int] = []
    sites: list[Site] = []
    old: list[str] = []
    new: list[str] = []

    def close() -> None:
        if old or new:
            end = sum(map(len, before))
            start = end - sum(map(len, old))
            is_import = all(_IMPORT.match(line.rstrip("\n")) for line in (*old, *new))
            sites.append(Site(start, end, "".join(new), is_import))
        old.clear()
        new.clear()

    for line in lines:
        mark, text = line[0], line[1:]
        if mark != "+" and (new or mark in " ?"):
            close()
        if mark == "?":
            traps.append(sum(map(len, before)))
        if mark == "+":
            new.append(text)
        else:
            before.append(text)
            if mark == "-":
                old.append(text)
    close()
    return Edit(name, language_for("", name), "".join(before), tuple(sites), tuple(traps))
