"""What a model for edits is given after an edit, by a real server: code of other files, and what the editor reports.

The model is a tiny random one, and its engine keeps what it is asked.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.gguf_files import SPECIALS, tiny_network
from support.next_edit_editor import NextEditEditor
from support.recording_engine import RecordingEngine

from engine.protocol.messages import Fill, HoleRequest, Read, Snippet
from engine.protocol.rewrite import Report
from lsp_server.wire import DIAGNOSTICS

APP = "from loader import load\n\n\ndef main(args):\n    text = load(args.path)\n    print(text)\n    return text\n"
LOADER = "def load(path, encoding):\n    return open(path, encoding=encoding).read()\n"


@pytest_asyncio.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingEngine]:
    """An engine with a model that has the name and the tokens of the format `instruct`."""
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("MIDSPAN_KERNEL", "numpy")
    specials = (*SPECIALS, "<|im_start|>", "<|im_end|>")
    engine = RecordingEngine(tiny_network("qwen2").save_gguf(tmp_path / "tiny-instruct.gguf", specials=specials))
    await engine.start()
    yield engine
    await engine.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "loader.py").write_text(LOADER)
    return folder


async def rewrites(
    editor: NextEditEditor,
    engine: RecordingEngine,
    workspace: Path,
    experimental: dict[str, bool] | None = None,
    **settings: Any,
) -> list[HoleRequest]:
    """Return what the engine is asked after an edit in app.py."""
    model = str(workspace.parent / "tiny-instruct.gguf")
    options = {"model": model, "editsModel": model, "threads": 1, "memory": "off", **settings}
    await editor.start({"midspan": options}, folders=[workspace], experimental=experimental)
    editor.show(APP, (workspace / "app.py").as_uri())
    editor.replace("load(args.path)", "load(args.path, args.kind)")
    await editor.next_edit()
    return [request for request in engine.requests if request.rewrite is not None]


@pytest_asyncio.fixture
async def editor() -> AsyncIterator[NextEditEditor]:
    editor = NextEditEditor()
    yield editor
    await editor.stop()


def says(editor: NextEditEditor, answer: Callable[[Any], object]) -> None:
    """Have the editor answer what its compilers report."""
    editor.client.feature(DIAGNOSTICS)(answer)


async def test_the_prompt_is_read_while_the_user_may_still_type_on(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path
) -> None:
    ahead, asked = await rewrites(editor, engine, workspace)
    assert isinstance(ahead, Read)
    assert isinstance(asked, Fill)
    assert ahead.rewrite == asked.rewrite


async def test_the_declaration_of_what_the_edit_uses_is_read(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path
) -> None:
    for fill in await rewrites(editor, engine, workspace):
        assert fill.snippets == [Snippet("loader.py", LOADER)]


async def test_no_other_file_is_read_where_the_setting_keeps_them_from_models(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path
) -> None:
    asked = await rewrites(editor, engine, workspace, relatedFiles="never")
    assert [fill.snippets for fill in asked] == [[], []]


async def test_what_the_editor_reports_of_the_region_is_read(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path
) -> None:
    said = [{"line": 5, "message": "text is not defined\nmore"}, {"line": 900, "message": "far away"}]
    says(editor, lambda params: said if params.uri == editor.uri else [])
    _, asked = await rewrites(editor, engine, workspace, {"midspanDiagnostics": True})
    assert asked.rewrite is not None
    assert asked.rewrite.reports == [Report(6, "print(text)", "text is not defined")]


@pytest.mark.parametrize("answer", [None, {"line": 1}, [{"line": "x"}]])
async def test_an_editor_that_answers_something_else_reports_nothing(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path, answer: object
) -> None:
    says(editor, lambda params: answer)
    _, asked = await rewrites(editor, engine, workspace, {"midspanDiagnostics": True})
    assert asked.rewrite is not None
    assert asked.rewrite.reports == []


async def test_an_editor_that_does_not_say_so_is_not_asked(
    editor: NextEditEditor, engine: RecordingEngine, workspace: Path
) -> None:
    questions: list[object] = []
    says(editor, lambda params: questions.append(params))
    assert await rewrites(editor, engine, workspace)
    assert questions == []
