"""Pasted code with the names, quotes and indentation of its surroundings. In doubt nothing is changed."""

import itertools

import attrs

from lsp_server.documents.recent_edits import RecentEdit
from lsp_server.documents.source import Source
from lsp_server.languages.registry import language_for
from lsp_server.languages.syntax_errors import errors
from lsp_server.refactor.file_edit import FileEdit, Span, TextEdit, digest_of
from lsp_server.refactor.pasted_indent import indent_edits
from lsp_server.refactor.pasted_names import NoNames, Part, name_edits
from lsp_server.refactor.pasted_quotes import quote_edits
from lsp_server.refactor.syntax import PARSE_SECONDS, parse

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
    start, end = len(text[: edit.start].encode()), len(text[: edit.end].encode())
    syntax = parse(source.data, language)
    nothing = FileEdit(path, digest_of(text))
    if syntax is None:
        return nothing
    try:
        names = name_edits(syntax, start, end)
    except (NoNames, RecursionError):
        return nothing
    parts = sorted([*names, *quote_edits(syntax, start, end), *indent_edits(syntax, start, end)])
    if not parts or any(one[1] > other[0] for one, other in itertools.pairwise(parts)):
        return nothing
    data, position = list[bytes](), 0
    for first, last, new in parts:
        data += [source.data[position:first], new.encode()]
        position = last
    after = language.parse(b"".join([*data, source.data[position:]]), None, PARSE_SECONDS)
    if after is None or len(errors(after.root_node)) > syntax.errors:
        return nothing
    span = Span(edit.start, edit.end, source.lines.at(edit.start))
    return attrs.evolve(nothing, edits=tuple(_text_edit(source, one) for one in parts), places=(span,))


def _text_edit(source: Source, part: Part) -> TextEdit:
    start, end, text = part
    return TextEdit(start, end, source.offset_of_byte(start), source.offset_of_byte(end), text)
