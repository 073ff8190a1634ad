"""An editor for tests: a real `midspan-lsp` process on stdio, an open document with a cursor, and what it received."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp.client import make_test_lsp_client

from engine.client.address import runtime_paths_of
from support.engine_process import end

PATIENCE_S = 60.0
AUTOMATIC = types.InlineCompletionTriggerKind.Automatic
INVOKED = types.InlineCompletionTriggerKind.Invoked


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait until `condition` returns something true; fail after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        await asyncio.sleep(0.01)


@contextmanager
def engine_home(directory: Path, model: Path | str) -> Iterator[None]:
    """Keep the engine's runtime files in `directory`, and stop the engine of `model` there at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIDSPAN_RUNTIME_DIR", str(directory))
        yield
        end(runtime_paths_of(str(model)))


@asynccontextmanager
async def ready_session(settings: dict[str, Any], **capabilities: Any) -> AsyncIterator["Editor"]:
    """Start a session with an engine that is ready, for tests that share it. Each opens a document of its own."""
    editor = Editor()
    await editor.start(settings, **capabilities)
    await editor.open_ready("|\n")
    yield editor
    await editor.stop()


class Editor:
    """Has one document at a time, with its text and cursor. Columns are counted in `encoding`, by an editor `name`."""

    def __init__(self, encoding: types.PositionEncodingKind = types.PositionEncodingKind.Utf16) -> None:
        self.client = make_test_lsp_client()
        self.encoding = encoding
        self.name = ""
        self.states: list[str] = []
        self.statuses: list[Any] = []
        self.memories: list[str | None] = []
        self.registered: list[str] = []
        self.canvases: list[list[str | None]] = []
        self.uri = ""
        self.text = ""
        self.offset = 0
        self.version = 0
        self.client.feature("midspan/status")(lambda params: self._note_status(params))
        self.client.feature("midspan/fillProgress")(lambda params: self.canvases.append(params.canvas))

    def _note_status(self, params: Any) -> None:
        self.statuses.append(params)
        self.states.append(params.state)
        self.memories.append(params.memory)

    async def start(
        self,
        options: object = None,
        *,
        pull: object = None,
        text_document: types.TextDocumentClientCapabilities | None = None,
        notebook_document: types.NotebookDocumentClientCapabilities | None = None,
        workspace_edit: types.WorkspaceEditClientCapabilities | None = None,
        experimental: types.LSPAny | None = None,
        folders: Sequence[Path] = (),
    ) -> types.InitializeResult:
        """Start the server with these initializationOptions and workspace folders.

        `pull` answers its workspace/configuration requests.
        """
        await self.client.start_io(sys.executable, "-m", "lsp_server", "--stdio")
        workspace = types.WorkspaceClientCapabilities(workspace_edit=workspace_edit)
        if folders:
            self.client.feature(types.CLIENT_REGISTER_CAPABILITY)(
                lambda params: self.registered.extend(registration.method for registration in params.registrations)
            )
            workspace.did_change_watched_files = types.DidChangeWatchedFilesClientCapabilities(True)
        if pull is not None:
            self.client.set_configuration(pull, section="midspan")
            workspace.configuration = True
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=[self.encoding]),
            window=types.WindowClientCapabilities(work_done_progress=True),
            workspace=workspace,
            text_document=text_document,
            notebook_document=notebook_document,
            experimental=experimental,
        )
        params = types.InitializeParams(
            capabilities=capabilities,
            client_info=types.ClientInfo(self.name) if self.name else None,
            initialization_options=options,
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders] or None,
        )
        return await self.client.initialize_session(params)

    async def stop(self) -> None:
        """End the session, unless it has already ended."""
        if self.client.stopped:
            return
        await self.client.shutdown_session()
        await self.client.stop()  # type: ignore[no-untyped-call]

    @property
    def pid(self) -> int:
        assert self.client._server is not None
        return self.client._server.pid

    def open(self, text: str, uri: str = "file:///project/notes.txt", language: str = "plaintext") -> None:
        """Open a document; "|" in `text` is the cursor."""
        self.offset = text.index("|")
        self.text = text.replace("|", "", 1)
        self.uri, self.version = uri, 0
        item = types.TextDocumentItem(uri, language, self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def open_ready(self, text: str, uri: str = "file:///project/notes.txt", language: str = "plaintext") -> None:
        """Open a document, and wait until the engine is ready for it."""
        self.open(text, uri, language)
        await self.until("ready")

    def close(self) -> None:
        """Close the document."""
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri)))

    def type(self, typed: str) -> None:
        """Insert `typed` at the cursor."""
        self._change(self.offset, typed)

    def delete(self, characters: int) -> None:
        """Delete the characters before the cursor, with one key each."""
        for _ in range(characters):
            self._change(self.offset - 1, "")

    def _change(self, start: int, new: str) -> None:
        """Replace the text from `start` to the cursor, and move the cursor to the end of `new`."""
        replaced = types.Range(self.position(start), self.position())
        self.text = self.text[:start] + new + self.text[self.offset :]
        self.offset = start + len(new)
        self.version += 1
        change = types.TextDocumentContentChangePartial(replaced, new)
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def position(self, offset: int | None = None) -> types.Position:
        """Return the position of the cursor, or of `offset`, in the editor's encoding."""
        before = self.text[: self.offset if offset is None else offset]
        line_start = before.rfind("\n") + 1
        name = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[self.encoding.value]
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[self.encoding.value]
        return types.Position(before.count("\n"), len(before[line_start:].encode(name)) // width)

    async def suggest(
        self,
        trigger: types.InlineCompletionTriggerKind = AUTOMATIC,
        selected: types.SelectedCompletionInfo | None = None,
    ) -> list[types.InlineCompletionItem]:
        """Request inline completions at the cursor."""
        answer = await self.client.text_document_inline_completion_async(self.question(trigger, selected))
        assert isinstance(answer, types.InlineCompletionList), "an answer is a list, never null"
        return list(answer.items)

    def question(
        self,
        trigger: types.InlineCompletionTriggerKind = AUTOMATIC,
        selected: types.SelectedCompletionInfo | None = None,
    ) -> types.InlineCompletionParams:
        context = types.InlineCompletionContext(trigger, selected)
        return types.InlineCompletionParams(context, types.TextDocumentIdentifier(self.uri), self.position())

    async def offered(self) -> list[types.InlineCompletionItem]:
        """Type until there is a suggestion: a random model often suggests nothing."""
        for char in "abcdefghijklmnopqrstuvwxyz" * 4:
            if items := await self.suggest():
                return items
            self.type(char)
        raise AssertionError("there is never a suggestion")

    async def fill(self, **options: object) -> Any:
        """Send midspan/fill for the cursor."""
        position = {"line": self.position().line, "character": self.position().character}
        params = {"textDocument": {"uri": self.uri}, "position": position, **options}
        return await self.client.protocol.send_request_async("midspan/fill", params)  # type: ignore[no-untyped-call]

    async def command(self, name: str, *arguments: Any) -> Any:
        return await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(name, arguments=list(arguments) or None)
        )

    async def dismiss(self) -> None:
        """Say that the user dismissed what is suggested at the cursor."""
        here = self.position()
        position = {"line": here.line, "character": here.character}
        await self.command("midspan.dismissed", {"uri": self.uri, "position": position})

    async def raw_request(self, method: str, params: object) -> Any:
        """Send a request unchecked, correct or not."""
        answer: Future[Any] = Future()
        self.client.protocol._request_futures["raw"] = answer
        self.client.protocol._send_data({"jsonrpc": "2.0", "id": "raw", "method": method, "params": params})
        return await asyncio.wrap_future(answer)

    def raw_notification(self, method: str, params: object) -> None:
        """Send a notification unchecked, correct or not."""
        self.client.protocol._send_data({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, state: str) -> None:
        """Wait until the status item shows `state`."""
        await eventually(lambda: self.states and self.states[-1] == state)

    def warnings(self) -> list[str]:
        return [message.message for message in self.client.messages]


async def shown(editor: Editor, trigger: types.InlineCompletionTriggerKind = AUTOMATIC) -> list[str]:
    """Return the texts that are suggested at the cursor."""
    return [str(item.insert_text) for item in await editor.suggest(trigger)]
