"""Where a suggestion came from, with a real server and a real engine whose memory knows an odd line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from support.git_folder import repository
from support.lsp_editor import Editor, engine_home, eventually

from engine.usage_file import StatisticsFile, Tally, by_language, statistics_path

ODD = "destination_of_everything = unlikely_name(someone, 4711)\n"
KNOWN = "first = 1\n" + ODD * 3
TYPED = "destination_of_everything = unlik"
REST = "ely_name(someone, 4711)"


@pytest.fixture(scope="module")
def settings(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with engine_home(tmp_path_factory.mktemp("runtime"), tiny_model):
        yield {"model": str(tiny_model), "threads": 1, "gate": 0, "budgetMs": 5000, "maxTokens": 32}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "project", {"shop/known.py": KNOWN, "work.py": ""})


@pytest_asyncio.fixture
async def editor(
    editor: Editor, settings: dict[str, Any], project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Editor:
    """An editor with statistics of its own, whose workspace is read, with an empty work.py."""
    monkeypatch.setenv("MIDSPAN_DATA_DIR", str(tmp_path / "data"))
    await editor.start(settings, folders=[project])
    editor.open("|\n", (project / "work.py").as_uri(), "python")
    await editor.fill(explain=True)
    return editor


async def why(editor: Editor) -> Any:
    return await editor.raw_request("midspan/whyThisSuggestion", {"textDocument": {"uri": editor.uri}})


async def test_a_fill_that_asks_gets_the_place_of_its_text(editor: Editor) -> None:
    editor.type(TYPED)
    found = await editor.fill(explain=True)
    assert (found.text, found.source) == (REST, "workspace")
    (origin,) = found.origins
    assert (origin.path, origin.line, origin.count, origin.total) == ("shop/known.py", 4, 3, 3)
    assert (await editor.fill()).origins == []


async def test_a_suggestion_names_its_place_before_and_after_it_is_taken(editor: Editor, project: Path) -> None:
    editor.type(TYPED)
    (item,) = await editor.suggest()
    assert item.insert_text == REST
    before = await why(editor)
    editor.type(REST + "\n")
    after = await why(editor)
    for answer in (before, after):
        assert answer.summary == f'"{REST}" comes mostly from the workspace'
        (place,) = answer.places
        assert place.text.startswith(f'"{REST}" as in shop/known.py:4, 3 of 3 times; the model alone: ')
        assert (place.uri, place.line) == ((project / "shop" / "known.py").as_uri(), 3)


async def test_a_file_that_is_excluded_meanwhile_is_not_filled_again(editor: Editor, settings: dict[str, Any]) -> None:
    editor.type(TYPED)
    assert await editor.suggest()
    pushed = {"midspan": {**settings, "exclude": ["work.py"]}}
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(pushed))
    asked = (await editor.command("midspan.status"))["asked"]
    answer = await why(editor)
    assert answer.summary == 'this file is left alone: it matches "work.py" of the setting midspan.exclude'
    assert (await editor.command("midspan.status"))["asked"] == asked


async def test_a_place_below_moves_with_the_lines_that_the_user_took(editor: Editor, project: Path) -> None:
    here = "PLACE[77].GUESS(ZEBRA, MOUSE, 88)"
    editor.open(f"|\n\nfirst = 1\n{here}\n", (project / "other.py").as_uri(), "python")
    editor.type(here[:16])
    assert [item.insert_text for item in await editor.suggest()] == [here[16:]]
    (place,) = (await why(editor)).places
    assert (place.uri, place.line) == (editor.uri, 3)
    editor.type(here[16:] + "\n\n")
    (place,) = (await why(editor)).places
    assert (place.uri, place.line) == (editor.uri, 5)
    assert " as in other.py:6, 1 of 1 times" in place.text


async def test_what_is_shown_and_taken_is_counted_by_its_source(editor: Editor) -> None:
    editor.type(TYPED)
    (item,) = await editor.suggest()
    assert item.command is not None
    editor.type(REST)
    await editor.command(item.command.command, *(item.command.arguments or []))
    await editor.stop()
    tally = by_language(StatisticsFile(statistics_path()).read())["python"]
    assert tally.of_source("workspace") == Tally(shown=1, accepted=1)
    assert tally.of_source("model") == tally.of_source("file") == Tally()


async def test_the_status_says_how_much_the_memory_knows(editor: Editor) -> None:
    report = await editor.command("midspan.status")
    assert re.fullmatch(r"memory: 2 files, \d+ tokens, [\d.]+ MB", report["memory"])
    await eventually(lambda: editor.memories and editor.memories[-1] == report["memory"])


async def test_before_any_suggestion_it_says_so(editor: Editor) -> None:
    answer = await why(editor)
    assert answer.summary == "nothing was asked for in this document yet"
    assert answer.places == []


async def test_a_text_that_is_not_suggested_any_more_is_not_explained(editor: Editor, project: Path) -> None:
    editor.type(TYPED)
    assert await editor.suggest()
    (project / "shop" / "known.py").unlink()
    gone = types.FileEvent((project / "shop" / "known.py").as_uri(), types.FileChangeType.Deleted)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([gone]))
    while True:
        answer = await why(editor)
        if "would not be suggested there now" in answer.summary:
            break
    assert answer.places == []


async def test_params_without_a_document_are_refused(editor: Editor) -> None:
    with pytest.raises(JsonRpcException, match="params of midspan/whyThisSuggestion"):
        await editor.raw_request("midspan/whyThisSuggestion", {})
