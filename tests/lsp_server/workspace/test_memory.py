"""What real language servers have an engine learn: with git's files, changes, rules, restarts and several editors."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio
from git_folder import git, repository, write
from lsp_editor import INVOKED, Editor, eventually
from lsprotocol import types
from recording_engine import RecordingEngine

PROJECT = {
    ".gitignore": "ignored.py\n",
    ".env": "PASSWORD=hunter2\n",
    "ignored.py": "ignored = 1\n",
    "README.txt": "no source\n",
    "main.py": "import shop\n",
    "shop/cart.py": "class Cart:\n    pass\n",
    "shop/secrets.yaml": "key: hunter2\n",
}
LEARNED = {"main.py": "import shop\n", "shop/cart.py": "class Cart:\n    pass\n"}
Change = types.FileChangeType


@pytest.fixture
def settings(tiny_model: Path) -> dict[str, Any]:
    return {"model": str(tiny_model), "threads": 1, "gate": 0, "maxTokens": 4, "budgetMs": 2000}


@pytest_asyncio.fixture
async def engine(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingEngine]:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    engine = RecordingEngine(tiny_model)
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project", PROJECT)
    (tmp_path / "outside.py").write_text("outside = 1\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "binary.py").write_bytes(b"\0\1\2")
    git(folder, "add", ".")
    return folder


@pytest_asyncio.fixture
async def editor(settings: dict[str, Any], project: Path, engine: RecordingEngine) -> AsyncIterator[Editor]:
    """An editor in the project, with an open document and its first request answered."""
    editor = Editor()
    await editor.start(settings, folders=[project])
    await work_on(editor, project / "main.py")
    yield editor
    await editor.stop()


def open_file(editor: Editor, file: Path) -> None:
    """Open a file with the cursor at its end."""
    editor.open(file.read_text() + "|", file.as_uri(), "python")


def name_of(folder: Path) -> str:
    """Return the name that the engine knows a workspace folder by."""
    return os.path.realpath(folder)


async def work_on(editor: Editor, file: Path) -> None:
    """Open a file and ask for suggestions there until the engine has answered."""
    open_file(editor, file)
    await editor.until("ready")
    await editor.suggest()


async def reconnect(editor: Editor) -> None:
    """Ask for suggestions until the server has found the engine again."""
    while editor.states[-1] != "ready":
        await editor.suggest(INVOKED)


def report(editor: Editor, change: Change, *paths: Path) -> None:
    """Report changes on the disk, as an editor that watches files does."""
    events = [types.FileEvent(path.as_uri(), change) for path in paths]
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(events))


def use_settings(editor: Editor, settings: dict[str, Any]) -> None:
    pushed = types.DidChangeConfigurationParams({"midspan": settings})
    editor.client.workspace_did_change_configuration(pushed)


def learned(engine: RecordingEngine, folder: Path, texts: dict[str, str]) -> Callable[[], bool]:
    return lambda: engine.texts(folder) == texts


def bars(editor: Editor) -> list[list[Any]]:
    """Return the reports of each progress bar for the reading of a workspace."""
    reports: dict[Any, list[Any]] = editor.client.progress_reports
    return [bar for bar in reports.values() if bar and getattr(bar[0], "title", "") == "Reading the workspace"]


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
    editor.open("import |", (project / "main.py").as_uri(), "python")
    await editor.until("ready")
    await editor.command("midspan.status")
    assert engine.memory.learned == []
    await editor.suggest()
    await eventually(lambda: set(engine.texts(project)) == set(LEARNED))
    await editor.stop()


async def test_a_fill_names_its_workspace_and_its_path_there(
    editor: Editor, engine: RecordingEngine, project: Path, tmp_path: Path
) -> None:
    fill = engine.fills[-1]
    assert (fill.workspace, fill.path, fill.memory) == (name_of(project), "main.py", "workspace")
    await work_on(editor, tmp_path / "outside.py")
    fill = engine.fills[-1]
    assert (fill.workspace, fill.path, fill.memory) == ("", "outside.py", "workspace")
    await eventually(learned(engine, project, LEARNED))
    assert list(engine.memory.texts) == [name_of(project)], "a file outside was learned"


@pytest.mark.parametrize("memory", ["file", "off"])
async def test_nothing_is_learned_when_the_memory_is_not_the_workspaces(
    settings: dict[str, Any], project: Path, engine: RecordingEngine, memory: str
) -> None:
    editor = Editor()
    await editor.start({**settings, "memory": memory}, folders=[project])
    await work_on(editor, project / "main.py")
    assert (engine.fills[-1].workspace, engine.fills[-1].memory) == ("", memory)
    assert engine.memory.learned == []
    assert editor.registered == []
    await editor.stop()


async def test_with_related_files_never_a_model_that_only_looks_up_tokens_still_has_its_workspace(
    settings: dict[str, Any], project: Path, engine: RecordingEngine
) -> None:
    editor = Editor()
    await editor.start({**settings, "relatedFiles": "never"}, folders=[project])
    await work_on(editor, project / "main.py")
    assert engine.fills[-1].workspace == name_of(project)
    await editor.stop()


async def test_with_related_files_never_a_model_that_reads_other_files_learns_none(
    settings: dict[str, Any], project: Path, engine: RecordingEngine
) -> None:
    engine.model_info = attrs.evolve(engine.model_info, context_tokens=32_000)
    await engine.stop()
    await engine.start()
    editor = Editor()
    await editor.start({**settings, "relatedFiles": "never"}, folders=[project])
    await work_on(editor, project / "main.py")
    assert engine.fills[-1].workspace == ""
    assert engine.memory.learned == []
    use_settings(editor, {**settings, "relatedFiles": "local"})
    await editor.suggest(INVOKED)
    await eventually(learned(engine, project, LEARNED))
    use_settings(editor, {**settings, "relatedFiles": "never"})
    await eventually(lambda: not engine.memory.texts[name_of(project)])
    await editor.stop()


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


async def test_a_restarted_engine_learns_everything_again(
    editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    await engine.stop()
    await editor.until("off")
    await engine.start()
    assert engine.texts(project) == {}
    await reconnect(editor)
    await eventually(learned(engine, project, LEARNED))


async def test_two_servers_with_two_workspaces_share_one_engine_and_no_file(
    editor: Editor, engine: RecordingEngine, project: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    other_project = repository(tmp_path / "other", {"main.py": "other = 1\n"})
    other = Editor()
    await other.start(settings, folders=[other_project])
    await work_on(other, other_project / "main.py")
    await eventually(learned(engine, other_project, {"main.py": "other = 1\n"}))
    await eventually(learned(engine, project, LEARNED))
    assert engine.fills[-1].workspace == name_of(other_project)
    await other.stop()
    assert engine.texts(project) == LEARNED


async def test_several_folders_are_learned_apart_and_a_removed_one_is_forgotten(
    engine: RecordingEngine, project: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    second = tmp_path / "second"
    write(second, {"b.py": "b = 1\n"})
    editor = Editor()
    await editor.start(settings, folders=[project, second])
    await work_on(editor, project / "main.py")
    await eventually(learned(engine, project, LEARNED))
    assert engine.texts(second) == {}, "nobody asked for suggestions there"
    await work_on(editor, second / "b.py")
    await eventually(learned(engine, second, {"b.py": "b = 1\n"}))

    removed = types.WorkspaceFoldersChangeEvent([], [types.WorkspaceFolder(project.as_uri(), project.name)])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(removed))
    await eventually(learned(engine, project, {}))
    assert engine.texts(second) == {"b.py": "b = 1\n"}
    await editor.stop()


async def test_a_cancelled_reading_stops_and_changes_are_still_learned(
    engine: RecordingEngine, project: Path, settings: dict[str, Any]
) -> None:
    names = [f"many/f{number}.py" for number in range(400)]
    write(project, dict.fromkeys(names, "x = 1\n"))
    engine.memory.file_s = 0.02
    editor = Editor()
    await editor.start(settings, folders=[project])
    await work_on(editor, project / "main.py")
    await eventually(lambda: bars(editor))
    (token,) = [token for token, bar in editor.client.progress_reports.items() if bar in bars(editor)]
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await eventually(lambda: bars(editor)[0][-1].kind == "end")
    count = len(engine.memory.learned)
    assert count < 300
    write(project, {"shop/new.py": "new = 1\n"})
    report(editor, Change.Created, project / "shop/new.py")
    await eventually(lambda: "shop/new.py" in engine.texts(project))
    assert len(engine.memory.learned) == count + 1
    await editor.stop()


async def test_a_workspace_that_is_too_large_is_learned_until_the_memory_is_full(
    engine: RecordingEngine, project: Path, settings: dict[str, Any]
) -> None:
    write(project, {f"many/f{number}.py": "x = 1\n" for number in range(400)})
    engine.memory.max_files = 50
    editor = Editor()
    await editor.start(settings, folders=[project])
    await work_on(editor, project / "main.py")
    await eventually(lambda: bars(editor) and bars(editor)[0][-1].kind == "end")
    assert len(engine.memory.learned) < 100, "the files near to the document were forgotten for those far away"
    assert any("the memory is full" in line.message for line in editor.client.log_messages)
    await editor.stop()


async def test_an_engine_that_dies_while_it_learns_harms_nobody(
    engine: RecordingEngine, project: Path, settings: dict[str, Any]
) -> None:
    write(project, {f"many/f{number}.py": "x = 1\n" for number in range(100)})
    engine.memory.file_s = 0.02
    editor = Editor()
    await editor.start(settings, folders=[project])
    await work_on(editor, project / "main.py")
    await eventually(lambda: engine.memory.learned)
    await engine.stop()
    await editor.until("off")
    assert (await editor.command("midspan.status"))["state"] == "off"
    assert [line.message for line in editor.client.log_messages if "please report" in line.message] == []
    await engine.start()
    engine.memory.file_s = 0.0
    await reconnect(editor)
    await eventually(lambda: len(engine.texts(project)) == 102)
    await editor.stop()
