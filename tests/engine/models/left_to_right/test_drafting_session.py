"""Qwen2.5-Coder in an editor's session: pulled from a hub on loopback, engine process, socket, language server."""

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from support.drafters import load_fim
from support.engine_process import end
from support.fim_checkpoints import FimCheckpoint, save_fim_checkpoint
from support.hub_server import Repository, serve
from support.lsp_editor import Editor

from engine.client import launcher as lifecycle
from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.library.catalog import catalog
from engine.protocol.messages import Fill, plain

pytestmark = pytest.mark.slow

NAME = "qwen2.5-coder-0.5b"
HOLE = Fill(id=1, prefix="total = ", suffix="\n", path="a/b.py", extent="lines", max_tokens=12, budget_ms=60_000.0)
CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += |\n    return result\n"


def pull(checkpoint: FimCheckpoint, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Pull and choose a checkpoint with `midspan models`, from a hub that serves it under a released name."""
    for variable in ("MODELS", "CONFIG", "RUNTIME"):
        patch.setenv(f"MIDSPAN_{variable}_DIR", str(folder / variable.lower()))
    repository = Repository({path.name: path.read_bytes() for path in checkpoint.folder.iterdir()})
    with serve() as hub:
        hub.repositories[catalog()[NAME].hub] = repository
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "NO_PROXY": "*"}
        for command in ("pull", "use"):
            arguments = [sys.executable, "-m", "engine.cli", "models", command, NAME]
            subprocess.run(arguments, env=environment, check=True, timeout=90)


@pytest.mark.timeout(300)
async def test_a_pulled_model_fills_holes_in_engine_and_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "HEARTBEAT_TIMEOUT_S", 200.0)  # on a busy machine transformers takes long to import
    checkpoint = save_fim_checkpoint(tmp_path / "released")
    pull(checkpoint, tmp_path, monkeypatch)
    paths = runtime_paths_of(NAME, "fp32")
    client = await connect_or_start(EngineOptions(model=NAME, threads=1, precision="fp32"), "test")
    try:
        # The test loads the model too, but only to lay out the engine's prompts.
        family = load_fim(tmp_path / "models" / NAME)
        for typed in ("", "w", "wi", "width"):
            hole = attrs.evolve(HOLE, prefix=HOLE.prefix + typed)
            layout = family.lay_out(hole)
            expected = checkpoint.greedy(
                [*layout.context, layout.anchor], hole.max_tokens, family.marks.ends, family.never
            )
            filled = await client.fill(hole)
            assert filled.rule == "verify"
            assert filled.candidates[0].tokens == [plain(text) for text in family.texts_of(expected)]
            assert (filled.cached_tokens > 0) == bool(typed)

        editor = Editor()
        await editor.start({"threads": 1, "precision": "fp32", "gate": 0, "budgetMs": 5000, "maxTokens": 8})
        editor.open(CODE, "file:///project/total.py", "python")
        answer = await editor.fill()
        assert answer.finish in {"complete", "canvas full"}
        assert answer.steps >= 1
        assert len(answer.tokens) <= 8
        left = await editor.fill(rule="left-to-right")
        assert left.text == answer.text
        report = await editor.command("midspan.status")
        model = report["engine"]["model"]
        assert (model["name"], model["family"], model["dtype"]) == (NAME, "qwen-fim", "float32")
        assert editor.warnings() == []
        await editor.stop()
        await client.close()
    finally:
        end(paths)
