"""pygls' protocol without its own copy of every document, and with our messages typed."""

from collections.abc import Generator
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method

from lsp_server.bulk_messages import (
    APPLY_BULK_EDIT,
    BULK_EDIT,
    NEXT_EDIT,
    ApplyRequest,
    BulkEditRequest,
    NextEditRequest,
)
from lsp_server.messages import (
    CURSOR_MOVED,
    FILL,
    PARTLY_ACCEPTED,
    SHOWN,
    CursorNotification,
    FillRequest,
    PartNotification,
    ShownNotification,
)
from lsp_server.why_messages import WHY, WhyRequest

_Handled = Generator[Any, Any, None]
_OURS: dict[str, type[Any]] = {
    FILL: FillRequest,
    WHY: WhyRequest,
    CURSOR_MOVED: CursorNotification,
    SHOWN: ShownNotification,
    PARTLY_ACCEPTED: PartNotification,
    BULK_EDIT: BulkEditRequest,
    APPLY_BULK_EDIT: ApplyRequest,
    NEXT_EDIT: NextEditRequest,
}
_Message = TypeVar("_Message")


class MidspanProtocol(LanguageServerProtocol):
    """Document notifications go to the server's handlers only.

    pygls would keep each text in its own workspace too, and split it into lines again at every keystroke.
    """

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> _Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> _Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> _Handled:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> _Handled:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> _Handled:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> _Handled:
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE], (params,), None

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """Run a handler. pygls would keep the future of each notification for ever, 4 kB for each key press."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))

    def as_json(self, message: object) -> Any:
        """Return a message as JSON values, for the places where LSP takes any."""
        return self._converter.unstructure(message)

    def from_json(self, data: object, message: type[_Message]) -> _Message:
        """Return the message in JSON values. Raises JsonRpcInvalidParams if it is none."""
        try:
            return self._converter.structure(data, message)
        except Exception:
            raise JsonRpcInvalidParams(f"the data are no {message.__name__}; ask for the actions again") from None

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the typed message. A request that cannot be read is refused; pygls would never answer it.

        pygls also calls this for every object inside a message; those are returned as they are.
        """
        if "jsonrpc" not in data:
            return data
        try:
            ours = _OURS.get(data.get("method", ""))
            if ours is not None:
                return self._converter.structure(data, ours)
            return super().structure_message(data)
        except Exception:
            if isinstance(data.get("id"), int | str) and isinstance(data.get("method"), str):
                refusal = JsonRpcInvalidParams(f"the params of {data['method']} are not what the protocol says")
                self._send_response(data["id"], error=refusal.to_response_error())
            raise
