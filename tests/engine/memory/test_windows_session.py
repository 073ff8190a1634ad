"""A released checkpoint of a masked model in an engine process, and files that a client has it learn."""

from pathlib import Path

import attrs
import pytest
from support.engine_process import end
from support.masked_checkpoints import save_checkpoint

from engine.client import launcher as lifecycle
from engine.client.address import runtime_paths_of
from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.memory_messages import Forget, Learn
from engine.protocol.messages import Fill, Snippet

pytestmark = pytest.mark.slow

KNOWN = "def area(width, height):\n    unlikely = width * height\n    return unlikely\n"
HOLE = Fill(
    id=1,
    prefix="import os\ndef area(width, height):\n    unlikely = ",
    suffix="\n",
    path="new.py",
    max_tokens=8,
    budget_ms=60_000.0,
    rule="left-to-right",
    workspace="/home/project",
)


@pytest.mark.timeout(300)
async def test_an_engine_reads_learned_files_of_the_workspace_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "HEARTBEAT_TIMEOUT_S", 200.0)  # on a busy machine transformers takes long to import
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path))
    folder = save_checkpoint("dream", tmp_path / "dream").folder
    client = await connect_or_start(EngineOptions(model=str(folder), threads=1), "test")
    try:
        nothing = await client.fill(HOLE)
        assert nothing.context_tokens == (await client.fill(attrs.evolve(HOLE, memory="off"))).context_tokens

        await client.learn(Learn("/home/foreign", "area.py", KNOWN))
        assert (await client.fill(HOLE)).context_tokens == nothing.context_tokens

        await client.learn(Learn("/home/project", "area.py", KNOWN.replace("\n", "\r\n")))
        assert (await client.memory_status("/home/project")).files == 1
        known = await client.fill(HOLE)
        by_hand = await client.fill(attrs.evolve(HOLE, memory="off", snippets=[Snippet("area.py", KNOWN)]))
        assert known.context_tokens == by_hand.context_tokens > nothing.context_tokens
        assert known.candidates == by_hand.candidates
        for memory in ("file", "off"):
            filled = await client.fill(attrs.evolve(HOLE, memory=memory))
            assert filled.context_tokens == nothing.context_tokens

        await client.forget(Forget("/home/project", ["area.py"]))
        assert (await client.fill(HOLE)).context_tokens == nothing.context_tokens
        await client.close()
    finally:
        end(runtime_paths_of(str(folder)))
