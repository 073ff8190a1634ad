"""A model with room for other files is given parts of those that are open. Nothing is kept of them for one without."""

from pathlib import Path

import attrs
import pytest
from lsprotocol import types
from support.recording_engine import RecordingEngine

from engine.client.launcher import EngineOptions
from engine.protocol.messages import Snippet
from lsp_server.server import MidspanServer
from lsp_server.session import Session


async def connected(model: Path, session: Session) -> None:
    """Open two documents, and connect to the engine of `model` then."""
    for name in ("first", "second"):
        document = types.TextDocumentItem(f"file:///project/{name}.txt", "plaintext", 0, f"{name}\n")
        session.opened(types.DidOpenTextDocumentParams(document))
    session.link.configure(EngineOptions(model=str(model)))
    await session.link.client()


def snippets(session: Session) -> list[Snippet]:
    """Return what the model is given of other files for a hole in the first document."""
    client, snapshot = session.link.connected, session.served("file:///project/first.txt")
    assert client is not None
    assert snapshot is not None
    return session.plan(snapshot, 0, client.welcome.model, session.configuration.settings).fill.snippets


@pytest.mark.parametrize(("room", "given"), [(8192, [Snippet("second.txt", "second\n")]), (768, [])])
async def test_only_a_model_with_room_is_given_other_files(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, given: list[Snippet]
) -> None:
    monkeypatch.setenv("MIDSPAN_RUNTIME_DIR", str(tmp_path / "runtime"))
    engine = RecordingEngine(tiny_model)
    engine.model_info = attrs.evolve(engine.model_info, context_tokens=room)
    await engine.start()
    server = MidspanServer()
    server.protocol.client_capabilities = types.ClientCapabilities()
    try:
        await connected(tiny_model, server.session)
        assert snippets(server.session) == given
        assert (server.session.window is not None) == bool(given)
    finally:
        await server.session.link.close()
        await engine.stop()
