"""Every masked family in an editor's session: language server, engine process, socket, and a released checkpoint."""

from pathlib import Path

import pytest
from support.lsp_editor import Editor, engine_home
from support.masked_checkpoints import FAMILIES, save_checkpoint

from engine.client import launcher as lifecycle
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.messages import Fill, Progress

pytestmark = pytest.mark.slow

HOLE = Fill(id=1, prefix="total = ", suffix="\n", max_tokens=8, budget_ms=20_000.0, rule="left-to-right")
CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += |\n    return result\n"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FAMILIES)
async def test_engine_and_editor_fill_holes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "HEARTBEAT_TIMEOUT_S", 200.0)  # on a busy machine transformers takes long to import
    folder = save_checkpoint(name, tmp_path / "models" / name).folder
    with engine_home(tmp_path, folder):
        client = await connect_or_start(EngineOptions(model=str(folder), threads=1), "test")
        seen: list[Progress] = []
        filled = await client.fill(HOLE, seen.append)
        (candidate,) = filled.candidates
        assert candidate.text == "".join(candidate.tokens)
        assert any(None in progress.canvas for progress in seen)

        editor = Editor()
        await editor.start({"model": str(folder), "threads": 1, "gate": 0, "budgetMs": 5000, "maxTokens": 8})
        editor.open(CODE, "file:///project/total.py", "python")
        answer = await editor.fill()
        assert answer.finish in {"complete", "canvas full"}
        assert len(answer.tokens) <= 8
        assert answer.steps >= 1
        assert answer.contextTokens > 20
        report = await editor.command("midspan.status")
        assert report["engine"]["model"]["family"] == name
        assert report["engine"]["model"]["noise"] == "absorbing"
        assert editor.warnings() == []
        await editor.stop()
        await client.close()
