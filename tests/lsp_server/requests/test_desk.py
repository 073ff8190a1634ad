"""The desk of a document: other documents have their own, and a closed document leaves nothing behind."""

import asyncio

from lsprotocol import types

from lsp_server.documents.store import Snapshot
from lsp_server.requests.desk import Desks
from lsp_server.server import MidspanServer
from lsp_server.session import Session
from lsp_server.suggest.pipeline import Presented
from lsp_server.suggest.silence import Silence

URI, OTHER = "file:///project/a.py", "file:///project/b.py"


def desks_with_open_documents() -> tuple[Session, Desks]:
    session = MidspanServer().session
    for uri in (URI, OTHER):
        session.open(types.TextDocumentItem(uri, "python", 0, "x"))
    return session, Desks(session)


def snapshot_of(session: Session, uri: str) -> Snapshot:
    snapshot = session.documents.snapshot(uri)
    assert snapshot is not None
    return snapshot


def close(session: Session, uri: str) -> None:
    session.closed(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))


def test_documents_do_not_share_suggestions() -> None:
    session, desks = desks_with_open_documents()
    desks.at(URI).reuse.remember(snapshot_of(session, URI), 1, [Presented("yz", False, 1.0)], lambda: 1)

    assert desks.at(OTHER).reuse.follow(snapshot_of(session, OTHER), 1) is None
    followed = desks.at(URI).reuse.follow(snapshot_of(session, URI), 1)
    assert followed is not None
    assert followed.texts == ["yz"]


def test_what_was_dismissed_in_one_document_is_shown_in_another() -> None:
    session, desks = desks_with_open_documents()
    desks.at(URI).restraint.dismissed(snapshot_of(session, URI), 1, ["yz"])

    assert desks.at(URI).restraint.is_silent(snapshot_of(session, URI), 1)
    assert not desks.at(OTHER).restraint.is_silent(snapshot_of(session, OTHER), 1)


async def test_with_its_document_a_desk_is_closed() -> None:
    session, desks = desks_with_open_documents()
    desk = desks.at(URI)
    desk.silence = Silence("waits")
    desk.restraint.dismissed(snapshot_of(session, URI), 1, ["yz"])
    running = desk.running["an asker"] = asyncio.create_task(asyncio.Event().wait())
    close(session, URI)
    await asyncio.wait([running], timeout=5)

    assert running.cancelled()
    session.open(types.TextDocumentItem(URI, "python", 0, "x"))
    assert desks.at(URI).silence is None
    assert not desks.at(URI).restraint.is_silent(snapshot_of(session, URI), 1)


async def test_a_document_that_is_opened_again_without_a_close_has_a_new_desk() -> None:
    session, desks = desks_with_open_documents()
    desks.at(URI).restraint.dismissed(snapshot_of(session, URI), 1, ["yz"])
    session.open(types.TextDocumentItem(URI, "python", 0, "x"))

    assert not desks.at(URI).restraint.is_silent(snapshot_of(session, URI), 1)


async def test_nothing_is_kept_of_a_document_that_is_not_open() -> None:
    session, desks = desks_with_open_documents()
    close(session, URI)
    desks.at(URI).silence = Silence("waits")

    assert desks.at(URI).silence is None
    assert list(desks) == []
