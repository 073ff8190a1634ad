"""What real language servers have an engine learn: after restarts, for several editors, and within limits."""

import os
from pathlib import Path

from lsprotocol import types
from support.git_folder import repository, write
from support.lsp_editor import Editor, eventually
from support.recording_engine import RecordingEngine
from support.workspace_editor import LEARNED, Change, Start, bars, learned, name_of, reconnect, report, work_on


async def test_a_new_session_keeps_what_the_engine_knows_until_it_is_learned_again(
    start: Start, editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    await editor.stop()
    (project / "shop/cart.py").rename(project / "shop/basket.py")
    engine.memory.file_s = 0.3

    await start(project / "main.py")
    await eventually(lambda: "shop/cart.py" not in engine.memory.texts[name_of(project)])
    assert "main.py" in engine.memory.texts[name_of(project)], "it answers meanwhile"
    await eventually(
        learned(engine, project, {"main.py": LEARNED["main.py"], "shop/basket.py": LEARNED["shop/cart.py"]})
    )


async def test_a_restarted_engine_learns_everything_again(
    editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    await engine.stop()
    await editor.until("idle")
    await engine.start()
    assert engine.texts(project) == {}
    await reconnect(editor)
    await eventually(learned(engine, project, LEARNED))


async def test_two_servers_with_two_workspaces_share_one_engine_and_no_file(
    start: Start, editor: Editor, engine: RecordingEngine, project: Path, tmp_path: Path
) -> None:
    other_project = repository(tmp_path / "other", {"main.py": "other = 1\n"})
    other = await start(other_project / "main.py", other_project)
    await eventually(learned(engine, other_project, {"main.py": "other = 1\n"}))
    await eventually(learned(engine, project, LEARNED))
    assert engine.asked[-1].workspace == name_of(other_project)
    await other.stop()
    assert engine.texts(project) == LEARNED


async def test_an_editor_that_leaves_a_folder_takes_nothing_from_another_editor_there(
    start: Start, editor: Editor, engine: RecordingEngine, project: Path
) -> None:
    await eventually(learned(engine, project, LEARNED))
    other = await start(project / "main.py")
    await eventually(lambda: len(engine.memory.learned) == 2 * len(LEARNED))
    removed = types.WorkspaceFoldersChangeEvent([], [types.WorkspaceFolder(project.as_uri(), project.name)])
    other.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(removed))
    await other.stop()
    assert engine.texts(project) == LEARNED
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(removed))
    await eventually(learned(engine, project, {}))


async def test_a_name_that_is_not_utf_8_leaves_one_file_out(
    start: Start, engine: RecordingEngine, tmp_path: Path
) -> None:
    folder = tmp_path / "without git"
    write(folder, {"a.py": "a = 1\n", "shop/b.py": "b = 1\n"})
    for name in (b"shop/\xff.py", b"\xfe\xff/c.py"):
        write(folder, {os.fsdecode(name): "x = 1\n"})
    await start(folder / "a.py", folder)
    await eventually(learned(engine, folder, {"a.py": "a = 1\n", "shop/b.py": "b = 1\n"}))


async def test_several_folders_are_learned_apart_and_a_removed_one_is_forgotten(
    start: Start, engine: RecordingEngine, project: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    write(second, {"b.py": "b = 1\n"})
    editor = await start(project / "main.py", project, second)
    await eventually(learned(engine, project, LEARNED))
    assert engine.texts(second) == {}, "nobody asked for suggestions there"
    await work_on(editor, second / "b.py")
    await eventually(learned(engine, second, {"b.py": "b = 1\n"}))

    removed = types.WorkspaceFoldersChangeEvent([], [types.WorkspaceFolder(project.as_uri(), project.name)])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(removed))
    await eventually(learned(engine, project, {}))
    assert engine.texts(second) == {"b.py": "b = 1\n"}


async def test_a_cancelled_reading_stops_and_changes_are_still_learned(
    start: Start, engine: RecordingEngine, project: Path
) -> None:
    names = [f"many/f{number}.py" for number in range(400)]
    write(project, dict.fromkeys(names, "x = 1\n"))
    engine.memory.file_s = 0.02
    editor = await start(project / "main.py")
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


async def test_a_workspace_that_is_too_large_is_learned_until_the_memory_is_full(
    start: Start, engine: RecordingEngine, project: Path
) -> None:
    write(project, {f"many/f{number}.py": "x = 1\n" for number in range(400)})
    engine.memory.max_files = 50
    editor = await start(project / "main.py")
    await eventually(lambda: bars(editor) and bars(editor)[0][-1].kind == "end")
    assert len(engine.memory.learned) < 100, "the files near to the document were forgotten for those far away"
    assert any("the memory is full" in line.message for line in editor.client.log_messages)


async def test_an_engine_that_dies_while_it_learns_harms_nobody(
    start: Start, engine: RecordingEngine, project: Path
) -> None:
    write(project, {f"many/f{number}.py": "x = 1\n" for number in range(100)})
    engine.memory.file_s = 0.02
    editor = await start(project / "main.py")
    await eventually(lambda: engine.memory.learned)
    await engine.stop()
    await editor.until("idle")
    assert (await editor.command("midspan.status"))["state"] == "idle"
    assert [line.message for line in editor.client.log_messages if "please report" in line.message] == []
    await engine.start()
    engine.memory.file_s = 0.0
    await reconnect(editor)
    await eventually(lambda: len(engine.texts(project)) == 102)
