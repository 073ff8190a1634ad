"""The limits of the fields of requests. Without them one client could block the engine for all others."""

from engine.protocol.memory_messages import Forget, Learn, MemoryRequest, MemoryStatusRequest
from engine.protocol.messages import Fill

_MAX_ID = 2**63 - 1
_RANGES: dict[str, tuple[float, float]] = {
    "id": (0, _MAX_ID),
    "budget_ms": (1, 600_000),
    "max_tokens": (1, 2048),
    "steps": (0, 2048),
    "candidates": (1, 8),
    "temperature": (0, 2),
    "top_p": (0.01, 1),
    "seed": (0, 2**63 - 1),
    "line": (0, 2**31 - 1),
}
_MAX_PATH = 4096
_MAX_LANGUAGE = 64
_MAX_CHARACTERS = {
    "prefix": 1_000_000,
    "suffix": 1_000_000,
    "path": _MAX_PATH,
    "language": _MAX_LANGUAGE,
    "workspace": _MAX_PATH,
    "scope": _MAX_PATH,
    "scored": 1000,
}
MAX_SNIPPETS = 64
MAX_SNIPPET_CHARACTERS = 200_000
"""Of all snippets of a fill together. The language server sends at most 48,000."""
MAX_LEARNED_CHARACTERS = 200_000
MAX_FORGOTTEN_PATHS = 10_000
_MAX_KEPT_PATHS = 20_000


def limit_error(fill: Fill) -> str | None:
    """Return one line that names the first field outside its limits and what is allowed; None for a valid fill."""
    for name, (low, high) in _RANGES.items():
        value = getattr(fill, name)
        if not low <= value <= high:  # also rejects NaN
            return f"{name} is {value}; it can be {low} to {high}"
    for name, maximum in _MAX_CHARACTERS.items():
        length = len(getattr(fill, name))
        if length > maximum:
            return f"{name} has {length} characters; at most {maximum} are allowed"
    if len(fill.snippets) > MAX_SNIPPETS:
        return f"there are {len(fill.snippets)} snippets; at most {MAX_SNIPPETS} are allowed"
    if any(len(snippet.path) > _MAX_PATH for snippet in fill.snippets):
        return f"the path of a snippet has more than {_MAX_PATH} characters"
    length = sum(len(snippet.text) for snippet in fill.snippets)
    if length > MAX_SNIPPET_CHARACTERS:
        return f"the snippets have {length} characters; at most {MAX_SNIPPET_CHARACTERS} are allowed"
    return None


def memory_limit_error(request: MemoryRequest) -> str | None:
    """Return one line that names the first field outside its limits and what is allowed; None for a valid request."""
    if not 0 <= request.id <= _MAX_ID:
        return f"id is {request.id}; it can be 0 to {_MAX_ID}"
    if not request.workspace and not isinstance(request, MemoryStatusRequest):
        return "workspace is empty; name the workspace's folder"
    bounded = [("workspace", request.workspace, _MAX_PATH)]
    if isinstance(request, Learn):
        if not request.path:
            return "path is empty; name the file"
        bounded += [
            ("path", request.path, _MAX_PATH),
            ("text", request.text, MAX_LEARNED_CHARACTERS),
            ("language", request.language, _MAX_LANGUAGE),
        ]
    elif isinstance(request, Forget):
        if len(request.paths) > MAX_FORGOTTEN_PATHS:
            return f"there are {len(request.paths)} paths; at most {MAX_FORGOTTEN_PATHS} are allowed"
        if len(request.keep) > _MAX_KEPT_PATHS:
            return f"{len(request.keep)} paths are to be kept; at most {_MAX_KEPT_PATHS} are allowed"
        bounded += [("a path", path, _MAX_PATH) for path in (*request.paths, *request.keep)]
    for name, text, most in bounded:
        if len(text) > most:
            return f"{name} has {len(text)} characters; at most {most} are allowed"
    return None
