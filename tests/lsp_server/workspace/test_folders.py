"""The places of files in the workspace folders."""

import os
from pathlib import Path

from support.git_folder import write

from lsp_server.workspace.learner import WorkspaceFile
from lsp_server.workspace.memory import Folders


def folders_of(*paths: Path) -> Folders:
    folders = Folders()
    folders.use(str(path) for path in paths)
    return folders


def test_a_file_has_a_place_in_its_folder_and_none_outside(tmp_path: Path) -> None:
    write(tmp_path, {"a/x/f.py": "", "ab/f.py": ""})
    folders = folders_of(tmp_path / "a")
    assert folders.place_of(str(tmp_path / "a/x/f.py")) == WorkspaceFile(os.path.realpath(tmp_path / "a"), "x/f.py")
    assert folders.place_of(str(tmp_path / "ab/f.py")) is None
    assert folders.place_of(str(tmp_path / "a")) is None
    assert folders.place_of("Untitled-1") is None
    assert folders_of().place_of(str(tmp_path / "a/x/f.py")) is None


def test_a_file_of_nested_folders_belongs_to_the_innermost(tmp_path: Path) -> None:
    write(tmp_path, {"a/b/f.py": ""})
    places = folders_of(tmp_path / "a", tmp_path / "a" / "b").places_of(str(tmp_path / "a/b/f.py"))
    assert [place.path for place in places] == ["f.py", "b/f.py"]


def test_a_place_is_that_of_the_real_file(tmp_path: Path) -> None:
    write(tmp_path, {"real/f.py": "", "outside.py": ""})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "alias.py").symlink_to(tmp_path / "real" / "f.py")
    (tmp_path / "real" / "out.py").symlink_to(tmp_path / "outside.py")
    folders = folders_of(tmp_path / "link")
    expected = WorkspaceFile(os.path.realpath(tmp_path / "real"), "f.py")
    assert folders.place_of(str(tmp_path / "link" / "f.py")) == expected
    assert folders.place_of(str(tmp_path / "real" / "alias.py")) == expected
    assert folders.place_of(str(tmp_path / "link" / "out.py")) is None
