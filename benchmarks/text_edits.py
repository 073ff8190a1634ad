"""Edits of one text that follow each other, or overlap."""

from collections.abc import Sequence

from lsp_server.refactor.file_edit import TextEdit


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
            done.append(TextEdit(0, 0, start, offset, new))
        start, new = offset + 1, ""
    return done


def apart(edits: Sequence[TextEdit]) -> list[TextEdit]:
    """Return the edits that ast-grep makes in one run, in their order: of two that overlap, the first or outer one."""
    kept: list[TextEdit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
