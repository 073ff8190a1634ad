"""Keys that are typed into hostile texts, in a real midspan-lsp whose event loop is measured."""

import sys
import time
from pathlib import Path

from hardening.answers import items_of
from hardening.editing import SETTINGS
from hardening.language_server import Broken, LanguageServer
from hardening.parser_texts import ParserText

LONGEST_MS = 250.0
"""No key may keep the event loop for longer, in its processor time. Quiet machines take less than 100 ms."""
PROBE = Path(__file__).resolve().parents[2] / "benchmarks" / "latency" / "loop_probe.py"
_KEYS = "a(x"


class HostileKeys:
    """A server whose steps are written to a file of `folder`. It must outlive all texts."""

    def __init__(self, folder: Path) -> None:
        self._steps = folder / "steps"
        self._server = LanguageServer(
            folder, SETTINGS, command=(sys.executable, "-P", str(PROBE), str(self._steps), "--stdio")
        )
        self._read = self._opened = 0

    def type_into(self, hostile: ParserText) -> float:
        """Open a text, type some keys into its middle, ask for suggestions after each, and close it. Return the longest
        step of a key in ms. Raises Broken when the server dies, does not answer, or a step takes too long.
        """
        self._opened += 1
        uri = f"file:///hostile/{self._opened}.txt"
        document = {"uri": uri, "languageId": hostile.language, "version": 0, "text": hostile.text}
        self._server.notify("textDocument/didOpen", {"textDocument": document})
        at = _position(hostile.text, len(hostile.text) // 2)
        self._ask(uri, at)
        self._longest()
        for version, key in enumerate(_KEYS, 1):
            change = {"range": {"start": at, "end": at}, "text": key}
            identifier = {"uri": uri, "version": version}
            self._server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
            at = {**at, "character": at["character"] + 1}
            self._ask(uri, at)
        time.sleep(0.1)  # What is parsed in the background belongs to the key.
        self._ask(uri, at)
        self._server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        longest = self._longest()
        if longest > LONGEST_MS:
            raise Broken(f"{hostile.language}, {hostile.name}: a key took {longest:.0f} ms")
        return longest

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _ask(self, uri: str, position: dict[str, int]) -> None:
        params = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}}
        items_of(self._server.ask("textDocument/inlineCompletion", params))

    def _longest(self) -> float:
        lines = self._steps.read_text().splitlines() if self._steps.exists() else []
        new, self._read = lines[self._read :], len(lines)
        return max(map(float, new), default=0.0)


def _position(text: str, offset: int) -> dict[str, int]:
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    line = before[before.rfind("\n") + 1 :]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}
