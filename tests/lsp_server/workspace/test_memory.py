"""What real language servers have an engine learn: with git's files, changes on the disk, rules and settings."""

import os
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
from lsprotocol import types
from support.git_folder import write
from support.lsp_editor import INVOKED, Editor, eventually
from support.recording_engine import RecordingEngine
from support.workspace_editor import LEARNED, Change, Start, bars, learned, name_of, report, use_settings, work_on

from lsp_server.server import MidspanServer
from lsp_server.workspace import learner as pace_module
from lsp_server.workspace.learner import Pace, WorkspaceFile
from lsp_server.workspace.memory import Folders


async def test_the_files_of_the_workspace_are_learned_without_secrets_links_and_ignored_files(
    editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    await eventually(lambda: bars(editor) and bars(editor)[0][-1].kind == "end")
    assert {path for _, path in engine.memory.learned} == set(LEARNED), "something else was sent"
    (bar,) = bars(editor)
    assert bar[0].cancellable
    assert "4 of 4 files" in [getattr(step, "message", None) for step in bar]


async def test_learning_begins_with_the_first_request_not_with_the_start(
    settings: dict[str, Any], project: Path, engine: RecordingEngine
) -> None:
    editor = Editor()
    await editor.start(settings, folders=[project])
    await editor.open_ready("import |", (project / "main.py").as_uri(), "python")
    await editor.command("midspan.status")
    assert engine.memory.learned == []
    await editor.suggest()
    await eventually(lambda: set(engine.texts(project)) == set(LEARNED))
    await editor.stop()


async def test_a_fill_names_its_workspace_and_its_path_there(
    editor: Editor, engine: RecordingEngine, project: Path, tmp_path: Path
) -> None:
    fill = engine.asked[-1]
    assert (fill.workspace, fill.path, fill.memory) == (name_of(project), "main.py", "workspace")
    await work_on(editor, tmp_path / "outside.py")
    fill = engine.asked[-1]
    assert (fill.workspace, fill.path, fill.memory) == ("", "outside.py", "workspace")
    await eventually(learned(engine, project, LEARNED))
    assert list(engine.memory.texts) == [name_of(project)], "a file outside was learned"


@pytest.mark.parametrize("memory", ["file", "off"])
async def test_nothing_is_learned_when_the_memory_is_not_the_workspaces(
    start: Start, project: Path, engine: RecordingEngine, memory: str
) -> None:
    editor = await start(project / "main.py", memory=memory)
    assert (engine.asked[-1].workspace, engine.asked[-1].memory) == ("", memory)
    assert engine.memory.learned == []
    assert editor.registered == []


async def test_with_related_files_never_a_model_that_only_looks_up_tokens_still_has_its_workspace(
    start: Start, project: Path, engine: RecordingEngine
) -> None:
    await start(project / "main.py", relatedFiles="never")
    assert engine.asked[-1].workspace == name_of(project)


async def test_with_related_files_never_a_model_that_reads_other_files_learns_none(
    start: Start, settings: dict[str, Any], project: Path, engine: RecordingEngine
) -> None:
    engine.model_info = attrs.evolve(engine.model_info, context_tokens=32_000)
    await engine.stop()
    await engine.start()
    editor = await start(project / "main.py", relatedFiles="never")
    assert engine.asked[-1].workspace == ""
    assert engine.memory.learned == []
    use_settings(editor, {**settings, "relatedFiles": "local"})
    await editor.suggest(INVOKED)
    await eventually(learned(engine, project, LEARNED))
    use_settings(editor, {**settings, "relatedFiles": "never"})
    await eventually(lambda: not engine.memory.texts[name_of(project)])


async def test_a_change_on_the_disk_is_learned_and_a_deletion_forgotten(
    editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    assert types.WORKSPACE_DID_CHANGE_WATCHED_FILES in editor.registered

    write(project, {"shop/cart.py": "class Basket: ...\n", "shop/new.py": "new = 1\n", "ignored.py": "changed\n"})
    write(project, {"shop/.env": "PASSWORD=2\n"})
    report(editor, Change.Changed, project / "shop/cart.py", project / "ignored.py")
    report(editor, Change.Created, project / "shop/new.py", project / "shop/.env")
    expected = {"main.py": "import shop\n", "shop/cart.py": "class Basket: ...\n", "shop/new.py": "new = 1\n"}
    await eventually(learned(engine, project, expected))

    for path in ("cart.py", "new.py", "secrets.yaml", ".env"):
        (project / "shop" / path).unlink()
    (project / "shop").rmdir()
    report(editor, Change.Deleted, project / "shop")
    await eventually(learned(engine, project, {"main.py": "import shop\n"}))
    assert "ignored.py" not in {path for _, path in engine.memory.learned}


async def test_a_branch_switch_is_learned_in_one_go(editor: Editor, engine: RecordingEngine, project: Path) -> None:
    await eventually(learned(engine, project, LEARNED))
    names = [f"branch/f{number}.py" for number in range(1200)]
    write(project, dict.fromkeys(names, "branch = 1\n"))
    for start in range(0, len(names), 100):
        report(editor, Change.Created, *(project / name for name in names[start : start + 100]))
    await eventually(lambda: set(engine.texts(project)) == {*LEARNED, *names})
    assert len(engine.memory.learned) == len(LEARNED) + len(names), "a file was learned twice"
    assert 1 <= len(bars(editor)) <= 4, "many reports at once are one reading"

    for name in names:
        (project / name).unlink()
    report(editor, Change.Deleted, *(project / name for name in names))
    await eventually(learned(engine, project, LEARNED))


async def test_an_open_document_is_learned_as_it_is_in_the_editor(
    editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    editor.type("typed = 1\n")
    await eventually(lambda: engine.texts(project)["main.py"] == "import shop\ntyped = 1\n")

    editor.type("saved = 2\n")
    identifier = types.TextDocumentIdentifier(editor.uri)
    editor.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))
    await eventually(lambda: "saved" in engine.texts(project)["main.py"])

    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
    await eventually(learned(engine, project, LEARNED))


async def test_what_is_excluded_now_is_forgotten_and_what_is_allowed_now_is_learned(
    editor: Editor, engine: RecordingEngine, project: Path, settings: dict[str, Any]
) -> None:
    await eventually(learned(engine, project, LEARNED))
    use_settings(editor, {**settings, "exclude": ["shop/cart.py"]})
    await eventually(lambda: set(engine.texts(project)) == {"main.py", "shop/secrets.yaml"})
    use_settings(editor, {**settings, "languages": {"python": False}})
    await eventually(learned(engine, project, {}))
    use_settings(editor, settings)
    await eventually(learned(engine, project, LEARNED))


async def test_the_workspace_is_forgotten_when_the_setting_is_turned_off(
    editor: Editor, engine: RecordingEngine, project: Path, settings: dict[str, Any]
) -> None:
    await eventually(learned(engine, project, LEARNED))
    use_settings(editor, {**settings, "memory": "file"})
    await eventually(learned(engine, project, {}))


async def rested(pace: Pace, worked_s: float) -> float:
    started = time.monotonic()
    await pace.rest(worked_s)
    return time.monotonic() - started


async def test_reading_takes_a_tenth_of_the_time_while_the_user_types() -> None:
    pace = Pace()
    pace.typed_at = time.monotonic()
    assert pace.is_gentle
    assert await rested(pace, 0.01) >= 0.089


async def test_reading_does_not_rest_when_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = Pace()
    assert not pace.is_gentle
    assert await rested(pace, 5.0) < 1.0
    monkeypatch.setattr(pace_module, "TYPING_S", 0.0)
    pace.typed_at = time.monotonic()
    assert not pace.is_gentle


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


def test_of_an_open_document_no_disk_is_asked_until_it_is_closed(tmp_path: Path) -> None:
    write(tmp_path, {"real/f.py": ""})
    link, path = tmp_path / "link", str(tmp_path / "link" / "f.py")
    link.symlink_to(tmp_path / "real")
    folders = folders_of(link)
    folders.opened(path)
    link.unlink()  # what it led to is only remembered now
    assert folders.place_of(path) == WorkspaceFile(os.path.realpath(tmp_path / "real"), "f.py")
    folders.closed(path)
    assert folders.place_of(path) is None


async def test_of_the_other_cells_of_a_notebook_no_disk_is_asked_when_one_is_closed(tmp_path: Path) -> None:
    write(tmp_path, {"real/f.ipynb": ""})
    link, path = tmp_path / "link", str(tmp_path / "link" / "f.ipynb")
    link.symlink_to(tmp_path / "real")
    session = MidspanServer().session
    session.memory.use_folders([str(link)])
    cells = [f"vscode-notebook-cell:{path}#{number}" for number in range(2)]
    for uri in cells:
        session.opened(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 0, "")))
    link.unlink()
    before = session.memory.folders.place_of(path)
    assert before is not None
    for uri, place in zip(cells, [before, None], strict=True):
        session.closed(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        assert session.memory.folders.place_of(path) == place
