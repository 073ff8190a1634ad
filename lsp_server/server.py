"""The language server: its requests, notifications and commands, from initialize to shutdown."""

import difflib
import functools
import logging
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from engine import __version__
from engine.errors import describe
from engine.protocol.editor_messages import COMMAND_LINE, FILL, FILL_PROGRESS, STATUS, FillParams, FillResult
from engine.usage_file import StatisticsFile, statistics_path
from lsp_server import lifetime, wire
from lsp_server.documents.parsing import KEY_PARSE_S, BackgroundParse
from lsp_server.documents.store import Documents, counts_newlines_only, is_file, path_of
from lsp_server.engine_link.link import EngineLink
from lsp_server.engine_link.offers import Ledger, Offers
from lsp_server.engine_link.progress_bar import ProgressBar
from lsp_server.engine_link.status import StatusBoard
from lsp_server.heap import FreeMemory
from lsp_server.protocol import MidspanProtocol, converter, log_to_client, set_level
from lsp_server.requests.ahead import ReadAhead
from lsp_server.requests.commands import Commands
from lsp_server.requests.fill import fill_request
from lsp_server.requests.items import CompletionItems, InlineCompletions, InsertMode
from lsp_server.requests.ladder import Ladder
from lsp_server.requests.late_edits import LateEdits
from lsp_server.requests.registration import (
    CompletionSwitch,
    FileWatch,
    HostQuestion,
    SettingsQuestion,
    follow_configuration,
)
from lsp_server.requests.suggestions import Suggestions
from lsp_server.session import NOTEBOOKS, OUT_OF_STEP, Session
from lsp_server.settings import Configuration, SettingsReading, setting_names
from lsp_server.workspace.memory import WorkspaceMemory

_logger = logging.getLogger(__name__)
# No space: a menu that opens at every word is in the way.
_COMPLETION_OPTIONS = types.CompletionOptions(trigger_characters=[".", "(", "[", "{", "=", ",", ":"])
_ACTION_OPTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.RefactorRewrite, types.CodeActionKind.QuickFix], resolve_provider=True
)


class MidspanServer(LanguageServer):
    """One editor's server. Its features share `session`."""

    protocol: MidspanProtocol

    def __init__(self) -> None:
        super().__init__(
            "midspan-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=MidspanProtocol,
            converter_factory=converter,
        )
        board = StatusBoard(functools.partial(self.protocol.notify, STATUS), self._warn)
        link = EngineLink(board, lambda: ProgressBar(self, "Starting the Midspan engine"))
        configuration = Configuration()
        parsing = BackgroundParse(lambda uri, seconds: documents.parse_on(uri, seconds))
        documents = Documents(KEY_PARSE_S, parsing.begin)
        reading = functools.partial(ProgressBar, self, "Reading the workspace", cancellable=True)
        memory = WorkspaceMemory(configuration, documents, link, reading, board.know)
        self.ledger = Ledger(StatisticsFile(statistics_path()))
        offers = Offers(board.counts, self.ledger)
        self.session = Session(configuration, documents, parsing, board, link, offers, memory)
        self.session.on_close.append(FreeMemory().closed)
        self.reading = ReadAhead(self.session)
        self.suggestions = Suggestions(self.session, self.reading, self._tell)
        self.edits = LateEdits(self, self.protocol, self.session)
        self.completion = CompletionItems(self.session, self.suggestions)
        complete = functools.partial(self.completion.complete)
        self.completion_switch = CompletionSwitch(self, complete, _COMPLETION_OPTIONS)
        self.file_watch = FileWatch(self)
        self.settings_question = SettingsQuestion(self, self._use)
        self.host_question = HostQuestion(self, link)
        self.ladder = Ladder(self, self.session)
        self._register_features()

    def _register_features(self) -> None:
        for method, handler in _FEATURES.items():
            self.feature(method)(handler)
        session, edits = self.session, self.edits
        inline = InlineCompletions(session, self.suggestions)
        handlers: dict[str, Callable[..., Any]] = {
            types.TEXT_DOCUMENT_DID_OPEN: session.opened,
            types.TEXT_DOCUMENT_DID_CHANGE: session.changed,
            types.TEXT_DOCUMENT_DID_SAVE: session.saved,
            types.TEXT_DOCUMENT_DID_CLOSE: session.closed,
            types.NOTEBOOK_DOCUMENT_DID_OPEN: session.notebook_opened,
            types.NOTEBOOK_DOCUMENT_DID_CHANGE: session.notebook_changed,
            types.NOTEBOOK_DOCUMENT_DID_CLOSE: session.notebook_closed,
            types.TEXT_DOCUMENT_INLINE_COMPLETION: inline.complete,
            wire.CURSOR_MOVED: self.reading.cursor_moved,
            wire.SHOWN: inline.shown,
            wire.PARTLY_ACCEPTED: inline.partly_accepted,
            wire.WHY: self.suggestions.why.answer,
            wire.WHY_NOTHING: self.suggestions.why.answer_nothing,
            types.TEXT_DOCUMENT_CODE_ACTION: edits.asked(lambda features: features.code_actions.offer),
            types.CODE_ACTION_RESOLVE: edits.asked(lambda features: features.code_actions.resolve),
            wire.BULK_EDIT: edits.asked(lambda features: features.bulk_edits.show),
            wire.APPLY_BULK_EDIT: edits.asked(lambda features: features.bulk_edits.apply),
            wire.NEXT_EDIT: edits.asked(lambda features: features.next_edits.find),
            wire.NEXT_EDIT_SHOWN: _ignore,
            # Clients of Copilot say with this which document the user looks at.
            "textDocument/didFocus": _ignore,
        }
        # Without its options pygls does not announce the capability.
        options = {
            types.TEXT_DOCUMENT_INLINE_COMPLETION: types.InlineCompletionOptions(),
            types.TEXT_DOCUMENT_CODE_ACTION: _ACTION_OPTIONS,
        }
        for method, bound in handlers.items():
            # pygls sets attributes on a handler; a bound method has none, a partial object does.
            self.feature(method, options.get(method))(functools.partial(bound))
        commands = Commands(session, self.suggestions, self.edits, self.host_question, self.ladder)
        for name, command in commands.handlers.items():
            self.command(name)(functools.partial(command))

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log an error. pygls would show it to the user, who can do nothing about it, and quote the message."""
        if source is FeatureRequestError:
            return  # The editor has got this error as its answer.
        _logger.error("%s: %s", source.__name__, describe(error))

    async def load_configuration(self, pushed: object = None) -> None:
        """Read the settings: from the editor if it answers such requests, else `pushed`, from its notification."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.configuration:
            await self.settings_question.ask()
        else:
            await self._use(pushed)

    async def _use(self, layer: object) -> None:
        self.apply(self.session.configuration.update(layer))
        await self.completion_switch.follow(self.session.configuration.settings.completion_items)
        await self.file_watch.follow(self.session.configuration.settings.memory == "workspace")

    def apply(self, reading: SettingsReading) -> None:
        """Use new settings, and tell the user what is wrong with them."""
        for problem in reading.problems:
            self._warn(problem)
        if reading.unknown:
            self._warn(f"no setting is called {', '.join(reading.unknown)}; {_suggested(reading.unknown)}")
        set_level(reading.settings.log_level)
        if self.session.window is not None:
            self.session.window.forget_selections()
        self.session.board.switch(self.session.configuration.is_on())
        self.session.memory.use_settings()
        self.host_question.use(reading.settings.engine_options)
        self.ladder.follow_settings()

    def _tell(self, line: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"Midspan: {line}"))

    def _warn(self, line: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"Midspan: {line}"))


def _initialize(ls: MidspanServer, params: types.InitializeParams) -> None:
    ls.session.configuration.begin(params.initialization_options)
    ls.session.encoding = ls.workspace.position_encoding or types.PositionEncodingKind.Utf16
    ls.completion.insert_mode = InsertMode.of(params.capabilities)
    if params.process_id:
        lifetime.end_with(params.process_id, functools.partial(_shutdown, ls))
    client = params.client_info.name if params.client_info else ""
    ls.session.documents.newline_only = counts_newlines_only(client)
    ls.ledger.is_kept = client != COMMAND_LINE
    if ls.session.configuration.settings.completion_items:
        ls.completion_switch.announce()
    uris = [folder.uri for folder in params.workspace_folders or []] or [params.root_uri or ""]
    ls.session.memory.use_folders(path_of(uri) for uri in uris if is_file(uri))


async def _initialized(ls: MidspanServer, _: types.InitializedParams) -> None:
    log_to_client(ls.window_log_message)
    await ls.load_configuration()
    ls.edits.begin()
    await follow_configuration(ls)


async def _configuration_changed(ls: MidspanServer, params: types.DidChangeConfigurationParams) -> None:
    await ls.load_configuration(params.settings)


def _folders_changed(ls: MidspanServer, _: types.DidChangeWorkspaceFoldersParams) -> None:
    ls.session.memory.use_folders(path_of(uri) for uri in ls.workspace.folders if is_file(uri))


def _files_changed(ls: MidspanServer, params: types.DidChangeWatchedFilesParams) -> None:
    ls.session.memory.files_changed(change.uri for change in params.changes)


def _lost(ls: MidspanServer, params: wire.LostParams) -> None:
    for uri in params.uris:
        if ls.session.lost(uri):
            ls._warn(f"{PurePath(path_of(uri)).name} is left alone: it {OUT_OF_STEP}")


async def _fill(ls: MidspanServer, params: FillParams) -> FillResult:
    ls.reading.stop()
    return await fill_request(ls.session, params, lambda progress: ls.protocol.notify(FILL_PROGRESS, progress))


async def _shutdown(ls: MidspanServer, *_: Any) -> None:
    ls.suggestions.cancel_all()
    ls.session.parsing.close()
    ls.host_question.end()
    await ls.ladder.close()
    await ls.edits.close()
    await ls.session.memory.close()
    await ls.session.link.close()
    await ls.ledger.close()


def _exit(*_: Any) -> None:
    lifetime.end_soon()


def _suggested(unknown: Iterable[str]) -> str:
    """Return the names of settings that are like unknown ones, as the end of a message."""
    names = {name.lower(): name for name in setting_names()}
    like = [close for name in unknown for close in difflib.get_close_matches(name.lower(), names)]
    if not like:
        return "docs/settings.md lists them all"
    return f"did you mean {' or '.join(names[each] for each in dict.fromkeys(like))}?"


def _ignore(*_: Any) -> None:
    """Take a notification that nothing follows from."""


_FEATURES: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: _initialize,
    types.INITIALIZED: _initialized,
    types.SHUTDOWN: _shutdown,
    types.EXIT: _exit,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: _folders_changed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: _files_changed,
    wire.LOST: _lost,
    FILL: _fill,
}
