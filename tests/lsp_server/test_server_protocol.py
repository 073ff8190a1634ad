"""pygls' protocol as we use it, without a process."""

from lsp_server.server import MidspanServer


def test_nothing_is_kept_of_a_notification_that_is_handled() -> None:
    server = MidspanServer()
    protocol = server.protocol
    document = {"uri": "file:///project/a.txt", "languageId": "plaintext", "version": 1, "text": "one\n"}
    opened = {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}
    protocol.handle_message(protocol.structure_message(opened))

    assert [each.text for each in server.session.documents.all()] == ["one\n"]
    assert not protocol._request_futures
