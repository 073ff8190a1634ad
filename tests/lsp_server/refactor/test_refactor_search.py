"""A whole workspace is searched: only files that git lists, in workers if there are many, up to caps that are told."""

import asyncio
import os
from pathlib import Path

import pytest
from support.git_folder import repository, write

from engine.bounds import MAX_FILE_BYTES
from lsp_server.documents.text_edit import TextEdit
from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit, digest_of
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.save import NotSaved, save
from lsp_server.refactor.search import Caps, Found, Progress, Target, search
from lsp_server.settings import Settings
from lsp_server.workspace.files import Rules, learnable_files

RULES = [learn([Example("foo(a)", "foo(a, t=3)")], language_for("python", ""))]


def targets(folder: Path) -> list[Target]:
    full = os.path.realpath(folder)
    return [Target(full, path) for path in learnable_files(full, Rules.of(Settings()), "")]


def run(folder: Path, caps: Caps = Caps()) -> tuple[list[Found], Progress]:  # noqa: B008
    return asyncio.run(search(RULES, targets(folder), caps, lambda progress: None))


def test_only_files_that_may_be_read_are_searched(tmp_path: Path) -> None:
    files = {
        "a.py": "foo(1)\n",
        ".gitignore": "b.py\n",
        "b.py": "foo(2)\n",
        "c.txt": "foo(3)\n",
        "d.go": "package d\n",
        "big.py": "foo(4)\n" * (MAX_FILE_BYTES // 7 + 1),
        "e.py": "bar(5)\n",
    }
    repository(tmp_path, files)
    (tmp_path / "latin.py").write_bytes("foo(6)  # é\n".encode("latin-1"))
    (tmp_path / "binary.py").write_bytes(b"foo(7)\0")
    found, progress = run(tmp_path)
    assert [one.target.path for one in found if one.edit.edits] == ["a.py"]
    assert [one.target.path for one in found if one.edit.left_out] == ["latin.py"]
    assert progress.places == 1
    assert not progress.reached


def test_many_files_are_searched_in_other_processes_with_the_same_result(tmp_path: Path) -> None:
    write(tmp_path, {f"{index:03}.py": f"foo({index})\n" for index in range(90)})
    found, progress = run(tmp_path)
    assert [one.target.path for one in found] == [f"{index:03}.py" for index in range(90)]
    assert (progress.searched, progress.places) == (90, 90)


@pytest.mark.parametrize(
    ("caps", "reached"),
    [
        (Caps(files=5), "only the first 5 of 40 files were searched"),
        (Caps(places=3), "the search ended at 8 places"),
        (Caps(seconds=0.0), "the search ended after 0 seconds"),
    ],
)
def test_reaching_a_cap_is_told(tmp_path: Path, caps: Caps, reached: str) -> None:
    write(tmp_path, {f"{index:03}.py": f"foo({index})\n" for index in range(40)})
    found, progress = run(tmp_path, caps)
    assert progress.reached == [reached]
    assert len(found) < 40


def edit_for(text: str) -> FileEdit:
    return FileEdit("a.py", digest_of(text), (TextEdit(0, 1, "ö"),))


def test_a_file_is_written_with_its_mode_its_mark_and_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    path.chmod(0o750)
    save([Found(Target(os.path.realpath(tmp_path), "a.py"), edit_for("a\r\nb"))])
    assert path.read_bytes() == b"\xef\xbb\xbf\xc3\xb6\r\nb"
    assert path.stat().st_mode & 0o777 == 0o750
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"], "no temporary file is left"


def test_a_file_that_must_not_be_written_is_refused_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    with pytest.raises(NotSaved, match=r"a\.py cannot be read"):
        save([Found(Target(os.path.realpath(tmp_path), "a.py"), edit_for("a"))])
    path.write_bytes(b"b")
    with pytest.raises(NotSaved, match=r"a\.py changed while the edit was computed"):
        save([Found(Target(os.path.realpath(tmp_path), "a.py"), edit_for("a"))])
    path.write_bytes(b"\xff")
    with pytest.raises(NotSaved, match=r"a\.py is not UTF-8"):
        save([Found(Target(os.path.realpath(tmp_path), "a.py"), edit_for("a"))])
    path.write_bytes(b"a")
    path.chmod(0o444)
    with pytest.raises(NotSaved, match=r"a\.py is read-only"):
        save([Found(Target(os.path.realpath(tmp_path), "a.py"), edit_for("a"))])
    assert path.read_bytes() == b"a"
