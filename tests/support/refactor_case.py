"""What the tests of rules share: learn from texts, apply to a text."""

import asyncio
from pathlib import Path

from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import described, with_contexts
from lsp_server.refactor.places.doubts import SURE
from lsp_server.refactor.rivals import with_rivals
from lsp_server.refactor.search import Caps, Found, Target, search


def edit_of(language_id: str, examples: list[tuple[str, str]], text: str) -> FileEdit:
    """Return the edits of `text` by the rules of examples."""
    language = language_for(language_id, "")
    return rewrite(learn([Example(*pair) for pair in examples], language), "file", text, language)


def repeated(language_id: str, before: str, after: str, text: str) -> str:
    """Return `text` after the edit of one example."""
    return edit_of(language_id, [(before, after)], text).applied(text)


def undone(edit: FileEdit, text: str) -> FileEdit:
    """Return the edit that turns the result of an edit of `text` back into it."""
    back: list[TextEdit] = []
    grown = 0
    for one in edit.edits:
        start = one.start + grown
        back.append(TextEdit(start, start + len(one.text), text[one.start : one.end]))
        grown += one.growth
    return FileEdit(edit.path, edits=tuple(back))


def reasons(edit: FileEdit) -> list[str]:
    """Return why places were left out, in their order."""
    return [one.phrase for one in edit.left_out]


def sure_edit(
    language_id: str, text: str, *examples: tuple[str, str], paths: tuple[str, str] = ("", "file")
) -> FileEdit:
    """Return the edit of the places that are sure. `paths` are those of the examples' file and of the text."""
    language = language_for(language_id, "")
    rules = with_contexts(learn([Example(*one, paths[0]) for one in examples], language), language)
    return rewrite(rules, paths[1], text, language, beside=SURE)


def doubts(edit: FileEdit) -> list[str]:
    """Return why places are doubtful, in their order."""
    return [reason.removeprefix("doubtful: ") for reason in reasons(edit) if reason.startswith("doubtful: ")]


def rules_of(language_id: str, *examples: tuple[str, str]) -> list[str]:
    """Return the rules of examples as code."""
    language = language_for(language_id, "")
    return [described(rule) for rule in learn([Example(*pair) for pair in examples], language).rules]


def workspace(tmp_path: Path, name: str, files: dict[str, str], old: str, new: str) -> dict[str, Found]:
    """Return the sure edits of files after `old` became `new` in the first one, by path."""
    first = next(iter(files))
    after = files[first].replace(old, new, 1)
    rules = learn([Example(files[first], after, first)], language_for(name, first))
    for path, text in {**files, first: after}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    targets = [Target(str(tmp_path), path) for path in files]
    found, _ = asyncio.run(search(with_rivals([rules], targets, 60.0), targets, Caps(), lambda _: None, beside=SURE))
    return {one.target.path: one for one in found}
