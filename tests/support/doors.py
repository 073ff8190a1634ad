"""Which modules may start programs, open files, make or walk folders and parse JSON: a stranger's things come in there.

Everything that a stranger sends goes through a few modules, which bound it (SECURITY.md, engine/bounds.py). `make lint`
fails where another module does one of these itself: call one of those, or say in `ALLOWED` whose the data are.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "lsp_server")
TRAINING = ("engine/corpus", "engine/evaluation", "engine/training")
"""Not in scope: they work on data that the user chose."""

ALLOWED: dict[str, dict[str, str]] = {
    "start a program": {
        "engine/git.py": "git, the only one that reads a stranger's folder",
        "engine/cli/__init__.py": "our own refactor command",
        "engine/cli/doctor.py": "our own language server",
        "engine/cli/json_rpc.py": "our own language server",
        "engine/cli/setup/deeds.py": "the user's editors",
        "engine/cli/setup/editors.py": "the user's editors",
        "engine/client/launcher.py": "our own engine",
        "lsp_server/refactor/worker.py": "our own workers",
        "lsp_server/requests/ladder.py": "our own command line",
    },
    "open a file": {
        "engine/reading.py": "files of a stranger's folder",
        "engine/json_file.py": "JSON files, bounded",
        "engine/whole_files.py": "writes",
        "engine/library/gguf_file.py": "a model's header, bounded",
        "engine/library/weights_header.py": "a model's header, bounded",
        "engine/library/packed_weights.py": "what our own kernel packed, with a sum",
        "engine/library/pull.py": "what the hub sends, of the length that it listed",
        "engine/library/store.py": "a sum over a pulled model",
        "engine/models/left_to_right/tensor_files.py": "a model's weights, mapped",
        "engine/models/diffusion_gemma/loading.py": "a template of a model's folder",
        "engine/library/catalog.py": "our own file",
        "engine/library/device_memory.py": "/proc and /sys",
        "engine/cli/cursor.py": "the file that the user named",
        "engine/cli/demo.py": "our own samples",
        "engine/cli/doctor.py": "our own log",
        "engine/cli/setup/deeds.py": "the editors' settings",
        "engine/cli/setup/editors.py": "the editors' settings",
        "engine/client/launcher.py": "our own token, log and processes",
        "engine/client/lock.py": "our own lock",
        "engine/http/access.py": "the user's tokens, and /proc",
        "engine/play/sudoku.py": "our own puzzles",
        "engine/server/log.py": "our own log",
        "engine/server/listener.py": "our own token",
        "engine/usage_file.py": "our own counts",
        "lsp_server/refactor/command.py": "the example that the user named",
        "lsp_server/refactor/save.py": "our own journal",
        "lsp_server/slots/slot.py": "our own queries",
    },
    "walk a folder": {
        "engine/reading.py": "a stranger's folder, bounded",
        "engine/cli/demo.py": "our own samples",
        "engine/cli/model_sheet.py": "a model's folder",
        "engine/cli/setup/command.py": "our own data",
        "engine/cli/setup/deeds.py": "our own plugin",
        "engine/cli/setup/editors.py": "our own plugin",
        "engine/client/address.py": "our own locks",
        "engine/library/packed_weights.py": "our own folder",
        "engine/library/resolve.py": "Ollama's and LM Studio's folders, bounded",
        "engine/library/store.py": "our own models",
        "engine/library/weights_header.py": "a model's folder",
        "engine/models/stock/network.py": "a model's folder",
        "engine/play/folder.py": "asks only whether the folder can be read",
        "lsp_server/refactor/save.py": "our own journals",
        "lsp_server/slots/find.py": "the names beside a file",
    },
    "make a folder": {
        "engine/whole_files.py": "for its user alone, whatever the umask",
        "engine/models/left_to_right/frequent.py": "of our own weights, which everybody may read",
    },
    "parse": {
        "engine/json_file.py": "JSON, bounded",
        "engine/protocol/framing.py": "frames, bounded",
        "engine/cli/json_rpc.py": "what our own language server answers",
        "engine/cli/setup/deeds.py": "our own receipt",
        "engine/cli/setup/editors.py": "what pip wrote of us",
        "engine/usage_file.py": "our own counts",
        "lsp_server/refactor/worker_process.py": "what our own parent sends",
    },
}
_PROGRAMS = ("subprocess", "os.system", "os.popen", "os.posix_spawn", "asyncio.create_subprocess")
_PARSERS = ("json.load", "msgpack.unpack", "msgpack.Unpacker", "pickle.load", "marshal.load", "yaml.")
_WALKS = ("os.walk", "os.fwalk", "os.scandir", "os.listdir", "glob.glob", "glob.iglob")
_METHODS = {
    **dict.fromkeys(("read_text", "read_bytes"), "open a file"),
    **dict.fromkeys(("iterdir", "glob", "rglob"), "walk a folder"),
    "mkdir": "make a folder",
}


def doors(source: str) -> Iterator[tuple[int, str]]:
    """Yield what a module does of this itself: the line, and a key of `ALLOWED`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "json", "pickle", "os"):
            for alias in node.names:
                yield from ((node.lineno, kind) for kind in _kinds(f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, kind) for kind in _kinds(ast.unparse(node.func), node))


def _kinds(name: str, call: ast.Call | None = None) -> Iterator[str]:
    if name.startswith(_PROGRAMS):
        yield "start a program"
    if name.startswith(_PARSERS):
        yield "parse"
    if name.startswith(_WALKS):
        yield "walk a folder"
    if name == "os.makedirs":
        yield "make a folder"
    if name in ("open", "os.open", "io.open") or (call is not None and name.endswith(".open") and _has_mode(call)):
        yield "open a file"
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        yield _METHODS[call.func.attr]


def _has_mode(call: ast.Call) -> bool:
    """Return whether a method `open` is that of a path: other objects have one too, and give it no mode."""
    first = call.args[0] if call.args else None
    return first is None or (isinstance(first, ast.Constant) and isinstance(first.value, str))


def complaints(root: Path) -> list[str]:
    """Return a line for each door that is not allowed, and for each module that no longer needs to be."""
    found: dict[tuple[str, str], int] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(TRAINING):
                for line, kind in doors(path.read_text("utf-8")):
                    found.setdefault((kind, name), line)
    allowed = {(kind, name) for kind, modules in ALLOWED.items() for name in modules}
    lines = [
        f"{name}:{line} may not {kind} itself; call a module that bounds it (tests/support/doors.py)"
        for (kind, name), line in found.items()
        if (kind, name) not in allowed
    ]
    return lines + [
        f"{name} does not {kind} any more; remove it from doors.py" for kind, name in allowed - found.keys()
    ]


if __name__ == "__main__":
    problems = complaints(ROOT)
    print("\n".join(problems) or f"{sum(map(len, ALLOWED.values()))} doors, all known")
    sys.exit(bool(problems))
