"""DiffusionGemma in an editor's session: language server, engine process, socket, and a released checkpoint."""

from pathlib import Path

import pytest
from lsprotocol import types
from support.lsp_editor import Editor, engine_home
from tiny_gemma import save_tiny_gemma

pytestmark = pytest.mark.slow

CODE = "def area(width, height):\n    return |\n"
OTHER = "".join(f"def shape_{number}(width):\n    return width * {number}\n\n\n" for number in range(60))


@pytest.mark.timeout(300)
async def test_an_editor_gets_fills_that_use_its_other_open_files(tmp_path: Path) -> None:
    folder = save_tiny_gemma(tmp_path / "model", window=16_384)
    with engine_home(tmp_path, folder):
        editor = Editor()
        options = {"model": str(folder), "threads": 1, "gate": 0, "budgetMs": 5000, "maxTokens": 8}
        await editor.start(options)
        editor.open(CODE, "file:///project/area.py", "python")
        alone = await editor.fill()
        assert 1 <= len(alone.tokens) <= 8
        assert alone.steps >= 1
        report = await editor.command("midspan.status")
        assert report["engine"]["model"]["family"] == "diffusion-gemma"
        assert report["engine"]["model"]["noise"] == "uniform"

        editor.open(OTHER + "|", "file:///project/shapes.py", "python")
        editor.open(CODE, "file:///project/area.py", "python")
        beside = await editor.fill()
        assert beside.contextTokens > alone.contextTokens + 500
        editor.type("w")
        again = await editor.fill()
        assert again.cachedTokens > beside.contextTokens - 40, "the other file was read again"

        settings = {"midspan": {**options, "relatedFiles": "never"}}
        editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(settings))
        assert (await editor.fill()).contextTokens < beside.contextTokens - 500
        assert editor.warnings() == []
        await editor.stop()
