"""Feeds every grammar with hostile texts, in a child process that may die, and watches what the scanners keep.

A grammar's scanner writes its state into 1,024 bytes of tree-sitter's. One that writes more overwrites the parser,
which may crash much later or never. So the child's grammars write into a large buffer first, and say how much it was.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

import attrs
import tree_sitter

from hardening.language_server import Broken
from hardening.parser_texts import ParserText, made, named
from hardening.work import Row, Work, told
from lsp_server.languages import language as language_module
from lsp_server.languages.language import Grammar
from lsp_server.languages.registry import LANGUAGES, language_for

STATE_BYTES = 1024
"""tree-sitter's room for a scanner's state."""
SLICE_S = 0.008
SLACK_S = 0.08
"""A slice may take so much longer than it was given. A bound of freezes on a busy machine: no key may take 100 ms."""
_SERIALIZE = 208
"""Where `external_scanner.serialize` is in TSLanguage, of ABI 14 and 15, with pointers of 8 bytes."""
_LANGUAGE_BYTES = 232
_NAME = b"tree_sitter.Language"


@attrs.frozen
class Seen:
    """What a text cost: `state` is the most bytes that a scanner wrote; `slowest` is the longest slice in seconds."""

    state: int
    slowest: float
    tree: bool


class ParserProcess:
    """A process that parses texts as the language server does. It is started again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def parse(self, hostile: ParserText) -> Seen:
        """Parse a text in slices, as keys do, then once more with an edit.

        Raises Broken when the process dies of it, or its scanner writes too much, or a slice takes too long.
        """
        process = self._process
        if process is None or process.poll() is not None:
            command = [sys.executable, "-c", "from hardening.parsers import serve; serve()"]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            self._process = process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([hostile.language, hostile.text]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise Broken(f"{hostile.language}, {hostile.name}: the parser died with {process.wait()}")
        seen = Seen(**json.loads(line))
        if seen.state > STATE_BYTES:
            raise Broken(f"{hostile.language}, {hostile.name}: a scanner wrote {seen.state} bytes")
        if seen.slowest > SLICE_S + SLACK_S:
            raise Broken(f"{hostile.language}, {hostile.name}: a slice took {seen.slowest * 1000:.0f} ms")
        return seen

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()


def serve() -> None:
    """Parse what comes in as lines; the child's part."""
    most = Watched()
    language_module._loaded = most.load  # type: ignore[assignment]
    for line in sys.stdin:
        language, text = json.loads(line)
        most.bytes = 0
        slowest, tree = _parsed(language, text)
        print(json.dumps({"state": most.bytes, "slowest": slowest, "tree": tree}), flush=True)


def _parsed(name: str, text: str) -> tuple[float, bool]:
    language, data, slowest, tree = language_for(name, ""), text.encode("utf-8", "surrogatepass"), 0.0, None
    for source in (data, data[:-1] + b"x"):
        began = time.process_time()
        parse = language.begin_parse(source, None)
        slowest = max(slowest, time.process_time() - began)
        while parse is not None and tree is None and not parse.ended and parse.seconds < 0.4:
            before = time.process_time()
            tree = parse.run(SLICE_S)
            slowest = max(slowest, time.process_time() - before)
        if tree is None:
            break
        changed, edited = tree, tree.copy()
        last = changed.root_node.end_point
        edited.edit(len(data) - 1, len(data), len(data), (last[0], max(last[1] - 1, 0)), last, last)
        before = time.process_time()
        language.parse(source, edited, SLICE_S)
        slowest = max(slowest, time.process_time() - before)
    return slowest, tree is not None


class Watched:
    """Grammars whose scanners say how many bytes of state they write: `bytes` is the most of them."""

    def __init__(self) -> None:
        self.bytes = 0
        self._grammars: dict[Grammar, tree_sitter.Language] = {}
        self._kept: list[Any] = []

    def load(self, grammar: Grammar) -> tree_sitter.Language:
        """Return a grammar that is watched, and keeps what does not fit to itself."""
        if grammar not in self._grammars:
            self._grammars[grammar] = tree_sitter.Language(self._watched(grammar))
        return self._grammars[grammar]

    def _watched(self, grammar: Grammar) -> object:
        pointer, capsule = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        original = getattr(import_module(grammar.module), grammar.function)()
        whole = ctypes.string_at(pointer(original, _NAME), _LANGUAGE_BYTES + 96)
        copy = ctypes.create_string_buffer(whole, len(whole))
        place = ctypes.c_void_p.from_buffer(copy, _SERIALIZE)
        if place.value:
            kind = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)
            write, room = kind(place.value), ctypes.create_string_buffer(1 << 22)

            def watched(scanner: int, target: int) -> int:
                size = int(write(scanner, ctypes.addressof(room)))
                self.bytes = max(self.bytes, size)
                if size > STATE_BYTES:
                    return 0
                ctypes.memmove(target, room, size)
                return size

            callback = kind(watched)
            place.value = ctypes.cast(callback, ctypes.c_void_p).value
            self._kept += [write, room, callback]
        self._kept += [original, copy]
        return capsule(ctypes.addressof(copy), _NAME, None)


def soak(work: Work) -> list[Row]:
    """Feed every grammar with the named texts, then with made ones until the time is over."""
    process, lost, times = ParserProcess(), list[str](), 0
    slowest = 0.0
    try:
        waiting, seed = named(), work.seed
        while work.left > 0:
            for hostile in waiting:
                try:
                    slowest = max(slowest, process.parse(hostile).slowest)
                except Broken as error:
                    lost.append(told(error))
                times += 1
            waiting = [ParserText(f"seed {seed}", each.id, made(each.id, seed)) for each in LANGUAGES]
            seed += 1
            work.say(f"{times:,} texts")
    finally:
        process.close()
    return [Row("texts for every grammar", times, sorted(set(lost))[:5], f"the slowest piece {slowest * 1000:.0f} ms")]
