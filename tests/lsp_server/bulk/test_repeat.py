"""Repeat this edit, over stdio: offered, shown, chosen, applied."""

from pathlib import Path

import pytest
from support.bulk_editor import IN_FILE, IN_WORKSPACE, BulkEditor, changes_of, edited


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("import http\n\nhttp.get(one)\n\n\nhttp.get(two)\nprint(3)\n")
    (folder / "other.py").write_text("import http\n\n\ndef load():\n    return http.get(three)\n")
    return folder


async def test_an_edit_is_offered_where_it_was_made_and_where_it_fits(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project)
    editor.show(project / "app.py")
    assert await editor.actions() == []

    editor.replace("get(one)", "get(one, timeout=10)")

    assert (await editor.action(IN_FILE)).title == "Repeat this edit in this file (1 place)"
    assert [one.title for one in await editor.actions("http.get(two)")] == [f"{IN_FILE} (1 place)", IN_WORKSPACE]
    assert await editor.actions("print") == []
    assert await editor.actions("http.get(two)", only=["quickfix"]) == []
    assert len(await editor.actions("http.get(two)", only=["refactor"])) == 2


async def test_an_editor_without_previews_resolves_the_edit(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    item = await editor.client.code_action_resolve_async(await editor.action(IN_WORKSPACE))

    here, other = changes_of(item.edit)
    assert (here.text_document.version, other.text_document.version) == (1, None)
    assert edited(editor.text, here.edits).count("timeout=10") == 2
    text = (project / "other.py").read_text()
    assert edited(text, other.edits) == text.replace("three)", "three, timeout=10)")


async def test_who_searches_again_after_an_edit_elsewhere_still_means_the_same_edit(
    editor: BulkEditor, project: Path
) -> None:
    text = "import http\n\nhttp.get(one)\n\n\nhttp.get(two)\n\n\nprint(3)\n\n\nhttp.get(four)\n"
    (project / "app.py").write_text(text)
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")
    item = await editor.action(IN_WORKSPACE)
    asked = item.command.arguments[0]
    first = await editor.request("midspan/bulkEdit", {"action": asked})

    editor.replace("print(3)", "# this is said once\nprint(3)")
    again = await editor.request("midspan/bulkEdit", {"action": {**_fields(asked), "version": editor.version}})

    assert [one.after for one in again.places] == [one.after for one in first.places]
    assert again.places[0].reason == "as in an earlier edit"
    assert again.title == first.title


async def test_an_editor_with_a_preview_chooses_places(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert shown.title == "Repeat this edit: 2 places in 2 files"
    assert [(one.path, one.before.strip(), one.after.strip()) for one in shown.places] == [
        ("app.py", "http.get(two)", "http.get(two, timeout=10)"),
        ("other.py", "return http.get(three)", "return http.get(three, timeout=10)"),
    ]
    result = await editor.apply(shown.id, [1])
    assert (result.applied, result.message) == (True, "1 place in 1 file changed")
    (change,) = changes_of(editor.applied[0].edit)
    assert change.text_document.uri.endswith("other.py")


WIDE = {
    "python": ("x.py", "import http\n\nhttp.get(one{})\nhttp.get(two{})\nhttp.post(three{})\n", ", timeout=10"),
    "javascript": ("x.js", "import m from 'm';\n\nm.get(one{});\nm.get(two{});\nm.post(three{});\n", ", 10"),
}  # fmt: skip


@pytest.mark.parametrize("language", WIDE)
async def test_wide_places_are_a_group_that_the_user_takes_and_others_take_for_nothing(
    editor: BulkEditor, project: Path, language: str
) -> None:
    name, text, more = WIDE[language]
    (project / name).write_text(text.format("", "", ""))
    await editor.begin(project, preview=True)
    editor.show(project / name, language)
    editor.replace("one", f"one{more}")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert shown.title.startswith("Repeat this edit: ")
    here = [(one.before.strip(), one.doubtful, one.wide) for one in shown.places if one.path == name]
    (two, three) = (line.strip() for line in text.format("", "", "").splitlines() if "two" in line or "three" in line)
    assert here == [(two, False, False), (three, True, True)]
    assert (await editor.apply(shown.id, [one.id for one in shown.places if one.path == name])).applied
    (change,) = changes_of(editor.applied[0].edit)
    assert edited(editor.text, change.edits) == text.format(more, more, more)


async def test_a_wide_place_that_shares_a_line_with_another_one_is_left_out(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text("import http\n\nhttp.get(one)\nhttp.get(two), http.post(three)\n")
    (project / "other.py").unlink()
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    (place,) = shown.places
    assert (place.after, place.doubtful) == ("http.get(two, timeout=10), http.post(three)", False)
    assert [one.reason for one in shown.leftOut] == ["wide: only `http` is as in the example"]


async def test_what_the_user_has_edited_is_not_edited_again(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text("emit(name, 1)\n\n\nemit(other, 2)\n")
    (project / "more.py").write_text("emit(third, 3)\n")
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("emit(name, 1)", "emit(1, name)")

    for asked, places in ((IN_FILE, ["emit(2, other)"]), (IN_WORKSPACE, ["emit(2, other)", "emit(3, third)"])):
        shown = await editor.bulk_edit(asked)
        assert [one.after for one in shown.places] == places, "nothing in `emit(1, name)` tells that it has the edit"


async def test_an_edit_is_offered_in_other_files_too(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")
    await editor.action(IN_FILE)
    editor.show(project / "other.py")

    assert await editor.actions("import") == []
    shown = await editor.bulk_edit(IN_FILE, at="http.get(three)")

    (place,) = shown.places
    assert (place.path, place.reason) == ("other.py", "as in app.py:3")
    assert (place.range.start.line, place.range.start.character) == (4, 11)
    assert (await editor.apply(shown.id, [0])).applied


async def test_line_ends_tabs_and_wide_characters_stay_as_they_are(editor: BulkEditor, project: Path) -> None:
    before = "import http\r\n\r\nif x:\r\n\tprint('🙂é', http.get(\r\n\t\t'🙂',\r\n\t))\r\n"
    (project / "other.py").write_bytes(b"\xef\xbb\xbf" + before.encode())
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("get(one)", "get(one, timeout=10)")

    shown = await editor.bulk_edit(IN_WORKSPACE)
    place = shown.places[1]
    await editor.apply(shown.id, [place.id])

    (change,) = changes_of(editor.applied[0].edit)
    assert edited(before, change.edits) == before.replace("'🙂',", "'🙂',\r\n\t\ttimeout=10,")
    assert (place.range.start.line, place.range.start.character) == (3, len("\tprint('XXé', "))
    assert place.before == "\tprint('🙂é', http.get(\r\n\t\t'🙂',\r\n\t))"


async def test_a_document_outside_of_the_workspace_has_its_own_places(editor: BulkEditor, project: Path) -> None:
    await editor.begin(project, preview=True)
    editor.open("|import http\n\nhttp.get(one)\n\nhttp.get(two)\n", "untitled:Untitled-1", "python")
    editor.replace("get(one)", "get(one, timeout=10)")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert [one.path for one in shown.places] == ["Untitled-1", "app.py", "app.py", "other.py"]
    assert (await editor.apply(shown.id, [0])).applied
    (change,) = changes_of(editor.applied[0].edit)
    assert (change.text_document.uri, change.text_document.version) == ("untitled:Untitled-1", 1)


async def test_a_renamed_declaration_takes_its_uses_along(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text(
        "def f(a):\n    count = a\n    return count + 1\n\n\ndef g(count):\n    return count\n"
    )
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("count", "total")

    shown = await editor.bulk_edit(IN_FILE)
    assert [(one.after.strip(), one.doubtful) for one in shown.places] == [
        ("return total + 1", False),
        ("def g(total):", True),
        ("return total", True),
    ]
    assert [one.title for one in await editor.actions()] == [f"{IN_FILE} (3 places)"], "it is a local"


async def test_a_renamed_method_is_looked_for_in_all_that_has_it(editor: BulkEditor, project: Path) -> None:
    (project / "app.py").write_text("class A:\n    def run_all(self):\n        pass\n\n\ndef f(x):\n    x.run_all()\n")
    (project / "heir.py").write_text("class B(A):\n    def run_all(self):\n        super().run_all()\n")
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("run_all", "run_each")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert [(one.path, one.after.strip(), one.doubtful) for one in shown.places] == [
        ("app.py", "x.run_each()", False),
        ("heir.py", "def run_each(self):", False),
        ("heir.py", "super().run_each()", False),
    ]
    assert (await editor.apply(shown.id, [1])).applied
    (project / "other.py").write_text("class C:\n    def run_all(self):\n        pass\n")
    shown = await editor.bulk_edit(IN_WORKSPACE)
    assert shown.places[0].doubtful, "the receiver may be a C"


async def test_an_added_statement_is_offered_beside_its_like(editor: BulkEditor, project: Path) -> None:
    text = "def f(a, b):\n    a.write(1)\n    if b:\n        a.write(2)  # two\n\n\ndef g(a):\n    a.write(3)\n"
    (project / "app.py").write_text(text)
    (project / "other.py").write_text("def h(a):\n    a.write(4)\n")
    await editor.begin(project, preview=True)
    editor.show(project / "app.py")
    editor.replace("    a.write(1)\n", "    a.write(1)\n    a.flush()\n")

    shown = await editor.bulk_edit(IN_WORKSPACE)

    assert [(one.path, one.after.strip(), one.doubtful) for one in shown.places] == [
        ("app.py", "a.write(2)  # two\n        a.flush()", False),
        ("app.py", "a.write(3)\n    a.flush()", True),
        ("other.py", "a.write(4)\n    a.flush()", True),
    ]
    assert (await editor.apply(shown.id, [0, 1])).applied
    (change,) = changes_of(editor.applied[0].edit)
    assert edited(editor.text, change.edits) == text.replace("1)", "1)\n    a.flush()").replace(
        "# two", "# two\n        a.flush()"
    ).replace("3)", "3)\n    a.flush()")


def _fields(asked: object) -> dict[str, object]:
    return dict(asked) if isinstance(asked, dict) else vars(asked)
