"""Any choice of places, applied by an editor and undone, gives back every byte: line ends, tabs, emoji and all."""

import os
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lsprotocol import types
from support.bulk_editor import changes_of, edited
from support.refactor_case import undone

from lsp_server.bulk.action import Draft, DraftFile
from lsp_server.bulk.repeat import Narrowing
from lsp_server.bulk.workspace_edit import EditForm, ready
from lsp_server.documents.source import Source
from lsp_server.documents.store import Documents, position_in
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.search import Target, examined

PYTHON = language_for("python", "")
JOIN = Example("import os\nos.path.join(a, b)\n", "from pathlib import Path\nPath(a) / b\n")
TIMEOUT = Example("get(a)", "get(a, timeout=10)")
WRAP = Example("f(a)", "g(f(a))")
LINES = [
    "x = os.path.join(c, d)",
    "\ty = 1",
    "print(os.path.join('🙂', e), os.path.join(f, g))",
    "os.path.join(os.path.join(h, '🙂é'), i)  # 🙂",
    "get(\n    '🙂', get(z),\n)",
    "get(os.path.join(k, l))",
    "f(f('é'))",
    "'''f(a)\n  🙂'''",
    "if x:\n\tget(m)\n\tf(n)",
    "",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = ["import os", *draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=8))]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def draft_of(folder: Path, example: Example) -> tuple[DraftFile, Narrowing] | None:
    """Return what a search finds in the folder's one file."""
    rules = learn([example], PYTHON)
    found = examined([rules], [Target(os.path.realpath(folder), "a.py")])
    if not found or not found[0].blocks:
        return None
    file = DraftFile.found((folder / "a.py").as_uri(), "a.py", found[0], "")
    return file, Narrowing(rules, "", PYTHON)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=texts(),
    bom=st.sampled_from(["", "\ufeff"]),
    example=st.sampled_from([JOIN, TIMEOUT, WRAP]),
    ticked=st.integers(0, 255),
)
def test_apply_and_undo_give_back_every_byte(
    tmp_path: Path, encoding: str, text: str, bom: str, example: Example, ticked: int
) -> None:
    path = tmp_path / "a.py"
    before = (bom + text).encode()
    path.write_bytes(before)
    drafted = draft_of(tmp_path, example)
    if drafted is None:
        return
    file, narrowing = drafted
    chosen = tuple(block for index, block in enumerate(file.blocks) if ticked >> index & 1) or file.blocks
    (one,) = ready([attrs.evolve(file, blocks=chosen)], narrowing.narrow, Documents())
    edit = EditForm(encoding, versions=True).workspace_edit([one], "Repeat")

    (change,) = changes_of(edit)
    after = edited(text, change.edits, encoding)
    path.write_bytes((bom + after).encode())
    expected = FileEdit(one.uri, edits=one.edits)
    assert after == expected.applied(text)
    assert all(block.after in after for block in chosen)

    undo = [
        types.TextEdit(_range(after, back.start, back.end, encoding), back.text)
        for back in undone(expected, text).edits
    ]
    path.write_bytes((bom + edited(after, undo, encoding)).encode())
    assert path.read_bytes() == before


def _range(text: str, start: int, end: int, encoding: str) -> types.Range:
    source = Source.of(text)
    return types.Range(position_in(source, start, encoding), position_in(source, end, encoding))


@pytest.mark.parametrize(("newline_only", "start"), [(False, (2, 6)), (True, (1, 12))])
def test_the_preview_names_the_line_and_column_of_an_editor_for_which_a_return_ends_none(
    tmp_path: Path, newline_only: bool, start: tuple[int, int]
) -> None:
    (tmp_path / "a.py").write_bytes('x = 1\n"""🙂\rb"""; get(b)\n'.encode())
    found = draft_of(tmp_path, TIMEOUT)
    assert found is not None

    shown = Draft("title", "", (found[0],)).shown(1, "utf-16", newline_only)

    assert shown.places[0].range.start == types.Position(*start)


@pytest.mark.parametrize(("newline_only", "line"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("head", ["x = 1\n", "# Code generated; DO NOT EDIT.\n"])
def test_the_preview_names_the_line_of_a_place_that_is_left_out_as_the_editor_counts(
    head: str, newline_only: bool, line: int
) -> None:
    text = head + '"""🙂\rb"""; get(\n    a,  # why\n    c,\n)\n'
    if "generated" in head:
        text = text.replace("  # why", "")
    rules = learn([Example("get(a, b)", "new(b)")], PYTHON)
    found = examined([rules], [Target("", "a.py", text)])

    file = DraftFile.found("file:///a.py", "a.py", found[0], "")
    shown = Draft("title", "", (file,)).shown(1, "utf-16", newline_only)

    assert [one.line for one in shown.left_out] == [line]
