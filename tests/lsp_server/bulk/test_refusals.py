"""What can go wrong with a bulk edit is told in one line, and then nothing at all is applied."""

import os
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.bulk_editor import IN_FILE, IN_WORKSPACE, BulkEditor, changes_of, edited
from support.lsp_editor import eventually

CALL = "import http\n\nhttp.get(two)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("import http\n\nhttp.get(one)\n")
    (folder / "other.py").write_text(CALL)
    return folder


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


async def with_places(editor: BulkEditor, project: Path, preview: bool = True, **settings: object) -> None:
    """Open app.py in an editor and make the edit there."""
    await editor.begin(project, preview=preview, settings=settings)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")


async def test_an_action_for_an_older_version_is_refused(editor: BulkEditor, project: Path) -> None:
    await with_places(editor, project, preview=False)
    item = await editor.action(IN_WORKSPACE)
    editor.type("# more\n")

    with pytest.raises(JsonRpcException, match="has changed since the action was offered; run the action again"):
        await editor.client.code_action_resolve_async(item)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_text(CALL + "# new\n"), "other.py has changed since its places were found"),
        (lambda path: path.unlink(), "other.py was deleted"),
        (lambda path: path.chmod(0o444), "other.py is read-only"),
        (lambda path: path.write_bytes(CALL.encode() + b"# \xe9\n"), "other.py is not UTF-8"),
        (lambda path: replace_by_pipe(path), "other.py cannot be read (it is no regular file)"),
        (
            lambda path: (path.rename(path.with_suffix(".p")), path.symlink_to(path.with_suffix(".p"))),
            "other.py cannot",
        ),
    ],
)
async def test_a_file_that_changed_on_the_disk_stops_the_whole_edit(
    editor: BulkEditor, project: Path, change: object, message: str
) -> None:
    (project / "third.py").write_text(CALL)
    await with_places(editor, project)
    shown = await editor.bulk_edit(IN_WORKSPACE)
    assert len(shown.places) == 2

    assert callable(change)
    change(project / "other.py")
    result = await editor.apply(shown.id, [0, 1])

    assert not result.applied
    assert result.message.startswith(message)
    assert "\n" not in result.message
    assert editor.applied == []
    assert (await editor.apply(shown.id, [1])).applied, "the other file alone is as it was"


async def test_a_document_that_was_typed_in_stops_the_whole_edit(editor: BulkEditor, project: Path) -> None:
    await with_places(editor, project)
    app = (editor.uri, editor.text, editor.version, editor.offset)
    editor.show(project / "other.py")
    editor.uri, editor.text, editor.version, editor.offset = app
    shown = await editor.bulk_edit(IN_WORKSPACE)

    editor.uri, editor.text, editor.version, editor.offset = (project / "other.py").as_uri(), CALL, 0, len(CALL)
    editor.type("# new\n")
    result = await editor.apply(shown.id, [0])

    assert (result.applied, editor.applied) == (False, [])
    assert result.message == "other.py has changed since its places were found; run the action again"


async def test_an_answer_of_the_editor_that_is_none_is_told_and_not_waited_for(
    editor: BulkEditor, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor, "_apply", lambda _: None)
    await with_places(editor, project)

    result = await editor.apply((await editor.bulk_edit(IN_WORKSPACE)).id, [0])

    assert not result.applied
    assert "(-32602)" in result.message


async def test_what_the_editor_refuses_is_told(editor: BulkEditor, project: Path) -> None:
    await with_places(editor, project)
    shown = await editor.bulk_edit(IN_WORKSPACE)
    editor.refuse = "the buffer is locked"

    result = await editor.apply(shown.id, [0])

    assert not result.applied
    assert result.message == "the editor did not apply the edit: the buffer is locked"


async def test_a_bulk_edit_that_is_forgotten_or_empty_is_told(editor: BulkEditor, project: Path) -> None:
    await with_places(editor, project)
    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert (await editor.apply(shown.id, [])).message == "no place is chosen"
    assert (await editor.apply(shown.id + 1, [0])).message == "these places are forgotten by now; run the action again"


async def test_unsaved_text_is_searched_instead_of_the_disks(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, preview=True)
    editor.show(project / "other.py")
    editor.replace("two", "unsaved")
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    (place,) = (await editor.bulk_edit(IN_WORKSPACE)).places

    assert place.after == "http.get(unsaved, timeout=10)"


async def test_generated_excluded_and_foreign_files_are_left_alone(editor: BulkEditor, project: Path) -> None:
    (project / "made.py").write_text("# Code generated by a tool. DO NOT EDIT.\n" + CALL)
    (project / "secrets.py").write_text(CALL)
    (project / "latin.py").write_bytes(CALL.encode() + b"# \xe9\n")
    await with_places(editor, project)

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert [one.path for one in shown.places] == ["other.py"]
    assert {(one.path, one.reason) for one in shown.leftOut} == {
        ("made.py", "the file says that it is generated"),
        ("latin.py", "this file is not UTF-8, and may have such places"),
    }


async def test_a_document_that_is_excluded_has_no_actions(editor: BulkEditor, project: Path) -> None:
    (project / "secrets.py").write_text(CALL)
    await editor.begin(project)
    editor.show(project / "secrets.py")
    editor.replace("get(two)", "get(two, timeout=10)")

    assert await editor.actions() == []


async def test_places_in_a_file_with_syntax_errors_are_doubtful(editor: BulkEditor, project: Path) -> None:
    (project / "broken.py").write_text(CALL + "def f(:\n    pass\n")
    await with_places(editor, project)

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert [(one.path, one.doubtful) for one in shown.places] == [("broken.py", True), ("other.py", False)]
    assert shown.places[0].reason == "as in app.py:3; this file has syntax errors"


async def test_a_place_that_may_mean_something_else_is_doubtful(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text(
        "def f(pump, music):\n    pump.stop()\n    print(1)\n    pump.stop()\n    music.stop()\n"
    )
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("pump.stop()\n    print", "pump.halt()\n    print")
    shown = await editor.bulk_edit(IN_FILE)
    assert [(one.before.strip(), one.doubtful) for one in shown.places] == [
        ("pump.stop()", False),
        ("music.stop()", True),
    ]
    assert shown.places[1].reason.startswith("its receiver is another one than in the example")


async def test_an_editor_that_asks_about_places_is_told_which_are_doubtful(editor: BulkEditor, project: Path) -> None:
    (project / "broken.py").write_text(CALL + "def f(:\n    pass\n")
    options = types.ChangeAnnotationsSupportOptions()
    form = types.WorkspaceEditClientCapabilities(document_changes=True, change_annotation_support=options)
    await editor.begin(project, edit=form)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    item = await editor.client.code_action_resolve_async(await editor.action(IN_WORKSPACE))

    assert item.edit is not None
    annotations = item.edit.change_annotations or {}
    asked = [
        annotations[edit.annotation_id].needs_confirmation
        for change in changes_of(item.edit)
        for edit in change.edits
        if isinstance(edit, types.AnnotatedTextEdit)
    ]
    assert asked == [True, False]


async def test_an_editor_that_cannot_ask_gets_no_doubtful_places(editor: BulkEditor, project: Path) -> None:
    (project / "broken.py").write_text(CALL + "def f(:\n    pass\n")
    await with_places(editor, project, preview=False)

    item = await editor.client.code_action_resolve_async(await editor.action(IN_WORKSPACE))

    assert [Path(change.text_document.uri).name for change in changes_of(item.edit)] == ["other.py"]
    await eventually(lambda: any(line.endswith("1 doubtful place not changed") for line in editor.warnings()))


async def test_an_editor_without_versions_gets_plain_changes(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, edit=types.WorkspaceEditClientCapabilities())
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    item = await editor.client.code_action_resolve_async(await editor.action(IN_WORKSPACE))

    assert item.edit is not None
    assert item.edit.document_changes is None
    ((uri, edits),) = (item.edit.changes or {}).items()
    assert (uri, edited(CALL, edits)) == ((project / "other.py").as_uri(), CALL.replace("two", "two, timeout=10"))


async def test_an_editor_that_resolves_nothing_has_the_server_apply_the_edit(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, action=None)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    item = await editor.action(IN_WORKSPACE)
    assert isinstance(item, types.Command)
    result = await editor.command(item.command, *(item.arguments or []))

    assert result == {"applied": True, "message": "1 place in 1 file changed"}
    assert len(editor.applied) == 1


async def test_nothing_to_change_is_told(editor: BulkEditor, project: Path) -> None:
    (project / "other.py").unlink()
    await with_places(editor, project, preview=False)

    with pytest.raises(JsonRpcException, match="no other place fits"):
        await editor.client.code_action_resolve_async(await editor.action(IN_WORKSPACE))


async def test_caps_that_are_reached_are_told(editor: BulkEditor, project: Path) -> None:
    await with_places(editor, project, refactorMaxFiles=1)

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert shown.reached == ["only the first 1 of 2 files were searched"]


async def test_the_chosen_places_decide_what_is_imported(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text("import os\n\nos.path.join(a, b)\n")
    before = "import os\n\nx = os.path.join(c, d)\n\ny = os.path.join(e, f)\n"
    (project / "other.py").write_text(before)
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("os.path.join(a, b)", "Path(a) / b")
    editor.replace("import os", "from pathlib import Path")

    shown = await editor.bulk_edit(IN_WORKSPACE)
    assert [one.after for one in shown.following] == ["from pathlib import Path"]
    await editor.apply(shown.id, [1])
    await editor.apply(shown.id, [0, 1])

    texts = [edited(before, changes_of(one.edit)[0].edits) for one in editor.applied]
    assert "import os\n" in texts[0]
    assert "x = os.path.join(c, d)\n\ny = Path(e) / f\n" in texts[0]
    assert texts[1] == "from pathlib import Path\n\nx = Path(c) / d\n\ny = Path(e) / f\n"
