"""Pasted code with the names, quotes and indentation of its surroundings. In doubt nothing is changed."""

import itertools

import attrs

from lsp_server.documents.edits import RecentEdit
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.refactor.file_edit import FileEdit, Span, digest_of
from lsp_server.refactor.pasted_indent import indent_edits
from lsp_server.refactor.pasted_names import NoNames, name_edits
from lsp_server.refactor.pasted_quotes import quote_edits
from lsp_server.refactor.sound import is_sound
from lsp_server.refactor.syntax import parse

_MAX_CHARS = 200_000
_MAX_LINES = 60
_MOST_CHANGES = 2
"""An editor may indent what it has pasted, in a change of its own."""


def is_paste(edit: RecentEdit) -> bool:
    """Return whether an edit looks like a paste of several lines: they came at once, and nothing was replaced."""
    lines = [line for line in edit.after[edit.start : edit.end].splitlines() if line.strip()]
    is_new = not edit.before[edit.start : edit.old_end].strip()
    return is_new and 2 <= len(lines) <= _MAX_LINES and edit.changes <= _MOST_CHANGES and len(edit.after) <= _MAX_CHARS


def adapted(edit: RecentEdit, language_id: str, path: str) -> FileEdit:
    """Return the edit of the pasted lines that gives them the style of the file, in the text after the paste.

    It has no edits if a name of the pasted code stands for no other one, or for several.
    """
    text, language = edit.after, language_for(language_id, path)
    source = Source.of(text)
    start, end = source.byte_at(edit.start), source.byte_at(edit.end)
    syntax = parse(source.data, language)
    nothing = FileEdit(path, digest_of(text))
    if syntax is None:
        return nothing
    try:
        names = name_edits(syntax, start, end)
    except (NoNames, RecursionError):
        return nothing
    found = [*names, *quote_edits(syntax, start, end), *indent_edits(syntax, start, end)]
    edits = sorted(found, key=lambda one: (one.start, one.end, one.text))
    if not edits or any(one.end > other.start for one, other in itertools.pairwise(edits)):
        return nothing
    span = Span(edit.start, edit.end, source.lines.at(edit.start))
    whole = attrs.evolve(nothing, edits=tuple(one.in_text(source) for one in edits), places=(span,))
    return whole if is_sound(whole.applied(text), language, syntax.errors) else nothing
