"""The language server's memory: what closed documents took goes back to the system."""

import itertools
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hardening.language_server import HANG_S, LanguageServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives back what is free between the rest"),
]
_DOCUMENTS, _TOGETHER = 200, 40
_MOST_GROWTH = 20e6
"""Bytes. With Python's own allocator it is some 80 MB."""
_FUNCTIONS = {
    "python": "def total{n}(items, names):\n    found = [item * {n} for item in items if item > {n}]\n"
    "    return {{'found': found, 'count': len(found) + len(names)}}\n\n\n",
    "typescript": "function total{n}(items: number[], names: string[]) {{\n"
    "  const found = items.filter((item) => item > {n}).map((item) => item * 2);\n"
    "  return {{ found, count: found.length + names.length }};\n}}\n\n",
    "go": "func total{n}(items []int, names map[string]int) (int, error) {{\n\tfound := make([]int, 0, {n})\n"
    "\tfor _, item := range items {{\n\t\tfound = append(found, item*2)\n\t}}\n\treturn len(found), nil\n}}\n\n",
    "rust": "pub fn total{n}(items: &[i64], name: &str) -> i64 {{\n    let found: Vec<i64> = items.iter()"
    ".map(|item| item * {n}).collect();\n    found.len() as i64 + name.len() as i64\n}}\n\n",
    "java": "class Total{n} {{\n    int total(List<Integer> items, String name) {{\n        int found = 0;\n"
    "        for (Integer item : items) {{ found += item * {n}; }}\n        return found + name.length();\n"
    "    }}\n}}\n\n",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LanguageServer]:
    server = LanguageServer(tmp_path, {"model": str(tmp_path / "none"), "memory": "file"})
    yield server
    server.close()


def test_200_documents_leave_less_than_20_mb(server: LanguageServer) -> None:
    numbers, languages = itertools.count(), itertools.cycle(_FUNCTIONS)
    _close(server, _open(server, [(next(numbers), language, 1) for language in _FUNCTIONS]))
    first = _resident(server)

    for _ in range(_DOCUMENTS // _TOGETHER):
        these = itertools.islice(numbers, _TOGETHER)
        opened = _open(server, [(number, next(languages), 100 + 15 * (number % _TOGETHER)) for number in these])
        assert _resident(server) > first + 2 * _MOST_GROWTH, "these documents take too little to show anything"
        _close(server, opened)
        deadline = time.monotonic() + HANG_S
        while (left := _resident(server) - first) > _MOST_GROWTH:
            assert time.monotonic() < deadline, f"{left / 1e6:.0f} MB are left of {_TOGETHER} documents"
            time.sleep(0.05)


def _open(server: LanguageServer, documents: list[tuple[int, str, int]]) -> list[str]:
    """Open documents by number, language and size, and wait until they are parsed. Return their URIs."""
    uris = []
    for number, language, functions in documents:
        uris.append(f"file:///project/{number}")
        text = "".join(_FUNCTIONS[language].format(n=n + number) for n in range(functions))
        document = {"uri": uris[-1], "languageId": language, "version": 0, "text": text}
        server.notify("textDocument/didOpen", {"textDocument": document})
    # There is no model, so this is refused as soon as there is a tree. The documents are parsed by turns.
    asked = {"textDocument": {"uri": uris[-1]}, "position": {"line": 0, "character": 0}}
    assert server.ask("midspan/fill", asked).error is not None
    return uris


def _close(server: LanguageServer, uris: list[str]) -> None:
    for uri in uris:
        server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def _resident(server: LanguageServer) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)
