"""Several editors at once, one engine: every automatic request is answered, with a list, even if it was replaced."""

from pathlib import Path
from typing import Any

import pytest

from hardening.answers import items_of
from hardening.editing import SETTINGS
from hardening.language_server import LanguageServer

pytestmark = pytest.mark.slow
_EDITORS = 4
_TEXT = "import os\n\n\ndef names(folder):\n    return [name for name in os.listdir(folder) if name.endswith('.py')]\n"
_PIECES = [range(start, min(start + 5, len(_TEXT))) for start in range(0, len(_TEXT), 5)]
"""Keys without a pause between them: only the last of five may get more than an empty list."""
_URI = "file:///project/typed.py"


def test_every_automatic_request_of_several_editors_is_answered(home: Path) -> None:
    servers = [LanguageServer(home, SETTINGS) for _ in range(_EDITORS)]
    try:
        for server in servers:
            server.notify("textDocument/didOpen", {"textDocument": _document()})
            server.ask("midspan/fill", {"textDocument": {"uri": _URI}, "position": {"line": 0, "character": 0}})
        answers = [items for piece in _PIECES for items in _type_together(servers, piece)]
    finally:
        for server in servers:
            server.close()
    assert len(answers) == _EDITORS * len(_TEXT)
    assert sum(map(len, answers)) > 0, "something was suggested"


def _type_together(servers: list[LanguageServer], keys: range) -> list[list[dict[str, Any]]]:
    """Return the answers to some keys that all editors press at once."""
    asked = [(server, _type(server, key + 1, _TEXT[key])) for key in keys for server in servers]
    return [items_of(server.answer(number)) for server, number in asked]


def _document() -> dict[str, object]:
    return {"uri": _URI, "languageId": "python", "version": 0, "text": ""}


def _type(server: LanguageServer, version: int, key: str) -> int:
    """Type a key at the end of the text, and ask there as an editor does. Return the request's number."""
    end, after = _end(_TEXT[: version - 1]), _end(_TEXT[:version])
    change = {"range": {"start": end, "end": end}, "text": key}
    identifier = {"uri": _URI, "version": version}
    server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
    params = {"textDocument": {"uri": _URI}, "position": after, "context": {"triggerKind": 2}}
    return server.request("textDocument/inlineCompletion", params)


def _end(text: str) -> dict[str, int]:
    return {"line": text.count("\n"), "character": len(text) - text.rfind("\n") - 1}
