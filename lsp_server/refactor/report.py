"""What a search found, as a unified diff, as JSON, and as lines of what was left out."""

import json
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

import attrs
import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from engine.protocol.plain_text import plain
from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit, Omission, Span, TextEdit, counted
from lsp_server.refactor.pattern import RuleSet
from lsp_server.refactor.rewrite import fits_language, may_fit
from lsp_server.refactor.search import Found, Progress, Target
from lsp_server.workspace.reading import read_text


@attrs.frozen
class Result:
    """The JSON of a search. Its names are camelCase there."""

    files: list[FileEdit]
    searched: int
    places: int
    left_out: int
    reached: list[str]


def as_diff(found: Sequence[Found]) -> str:
    """Return the edits as a unified diff, each path as it is from here."""
    parts: list[str] = []
    for one in found:
        text = read_text(one.target.folder, one.target.path)
        if text is None or not one.edit.edits:
            continue
        path = shown_path(one)
        old, new = _lines(text), _lines(one.edit.applied(text))
        parts += unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(parts)


def shown(text: str) -> str:
    """Return what a command prints of a text: the text into a file or a pipe, without control codes for a terminal."""
    return plain(text) if sys.stdout.isatty() else text


def as_json(found: Sequence[Found], progress: Progress) -> str:
    """Return the edits as JSON."""
    files = [attrs.evolve(one.edit, path=shown_path(one)) for one in found]
    left_out = sum(len(one.edit.left_out) for one in found)
    result = Result(files, progress.searched, progress.places, left_out, progress.reached)
    return json.dumps(_converter().unstructure(result))


def omissions(found: Sequence[Found]) -> Iterator[str]:
    """Yield one line for each place that was left out."""
    for one in found:
        for omission in one.edit.left_out:
            yield plain(f"{shown_path(one)}:{omission.span.line + 1}: left out: {omission.reason}")


def unknown_names(found: Sequence[Found]) -> Iterator[str]:
    """Yield a line for each name that the edits use, and that some of the files do not know."""
    for name in sorted({name for one in found for name in one.edit.unknown}):
        files = [one for one in found if name in one.edit.unknown]
        places = sum(len(one.edit.places) for one in files)
        where = ", ".join(map(shown_path, files[:3])) + (", ..." if len(files) > 3 else "")
        yield (
            f"the edit uses `{name}`, which nothing defines or imports in {where} ({counted(places, 'place')}); "
            "import it in the example, and its import follows"
        )


def why_nothing(rules: Sequence[RuleSet], targets: Sequence[Target]) -> Iterator[str]:
    """Yield a line for each language: what was searched there, and why nothing was found."""
    for one in rules:
        files = [
            target
            for target in targets
            if any(fits_language(rule, language_for("", target.path)) for rule in one.rules)
        ]
        texts = [text for target in files if (text := read_text(target.folder, target.path)) is not None]
        alike = sum(may_fit(one, text.encode("utf-8", "surrogatepass")) for text in texts)
        if not files:
            yield f"{one.language}: no file of this language was searched"
        elif not alike:
            words = " or ".join(dict.fromkeys(repr(text) for rule in one.rules for text in rule.literals()[:1]))
            yield f"{one.language}: none of {counted(len(files), 'file')} has {words}"
        else:
            words = "has these words, but not this code" if alike == 1 else "have these words, but not this code"
            yield f"{one.language}: {alike} of {counted(len(files), 'file')} {words}"


def shown_path(found: Found) -> str:
    """Return the path of a file from the current folder, with slashes; the full one if it is elsewhere."""
    full = Path(found.target.folder, found.target.path)
    here = Path.cwd().resolve()
    return (full.relative_to(here) if full.is_relative_to(here) else full).as_posix()


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True) if "\r" not in text else [f"{line}\n" for line in text.split("\n")[:-1]]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    for cls in (Span, TextEdit, Omission, FileEdit, Result):
        names = {field.name: override(rename=_camel_case(field.name)) for field in attrs.fields(cls)}
        converter.register_unstructure_hook(cls, make_dict_unstructure_fn(cls, converter, **names))  # type: ignore[arg-type]
    return converter


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
