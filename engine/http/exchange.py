"""What a dialect is to the app: it reads a request, writes the answer, and puts problems into its own form.

A request may look up the memory of a workspace only if the user named its folder when they started the server.
Which of several folders a request without a path is from is told by its own lines. Only hashes of lines are kept. They
choose the memory; no model reads them, and what that memory has learned followed the user's settings. git is not asked:
a folder may be a stranger's, and its settings can name programs.
"""

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.bounds import LONGEST_PATH
from engine.http.completion import (
    DEFAULT_BUDGET_MS,
    NAME,
    Answer,
    Asked,
    extent_of,
    names_of,
    seed_of,
    temperature_of,
    top_p_of,
    within_limits,
)
from engine.http.connection import Problem
from engine.http.markers import Parts
from engine.protocol.messages import Fill, ModelInfo
from engine.reading import read_bytes, walk

_SHORTEST = 12
"""Characters of a line that says where it is from."""
_MOST_FILES = 20_000
_LINES_ABOVE, _LINES_BELOW = 80, 40
_NEAR = 20_000
"""Characters on each side of the cursor in which these lines are looked for."""
_ENOUGH = 4
"""Lines of one folder that a request has, and twice as many as of any other one."""
_GENERATED = frozenset(("node_modules", "__pycache__", "build", "dist", "target", "venv"))


class FolderLines:
    """The lines of some folders. `read` takes a while; a request before its end finds no folder."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._lines: dict[str, NDArray[np.int64]] = {}

    def read(self) -> None:
        """Read the files of all folders. Call it in a thread."""
        lines = {}
        for folder in self._folders:
            hashes = {value for text in _texts(folder) for value in _hashes(text.splitlines())}
            lines[folder] = np.array(sorted(hashes), np.int64)
        self._lines = lines

    def folder_of(self, above: str, below: str) -> str:
        """Return the folder that has most of a request's lines near the cursor; "" if none clearly has."""
        lines, counts = self._lines, Counter[str]()
        if not lines:
            return ""
        above, below = above[-_NEAR:], below[:_NEAR]
        near = above.splitlines()[-_LINES_ABOVE:-1] + below.splitlines()[1:_LINES_BELOW]
        wanted = np.array(sorted(_hashes(near)), np.int64)
        for folder, known in lines.items():
            counts[folder] = int(np.isin(wanted, known, assume_unique=True).sum())
        (folder, first), *others = counts.most_common(2)
        second = others[0][1] if others else 0
        return folder if first >= _ENOUGH and first >= 2 * second else ""


def _hashes(lines: Sequence[str]) -> set[int]:
    return {hash(bare) for line in lines if len(bare := line.strip()) >= _SHORTEST}


def _texts(folder: str) -> Iterator[str]:
    for path in itertools.islice(walk(folder, _is_skipped), _MOST_FILES):
        if (content := read_bytes(folder, path)) is not None and b"\0" not in content:
            yield content.decode(errors="replace")


def _is_skipped(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(".") or name in _GENERATED


EVENTS = "text/event-stream"


@attrs.frozen
class Place:
    """A file as the engine's memory names it: the workspace's real path, and the path in it. Both can be ""."""

    workspace: str
    path: str


class Workspaces:
    """The folders that the user named."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.folders = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))
        self._lines = FolderLines(self.folders if len(self.folders) > 1 else ())

    def read(self) -> None:
        """Read the lines of several folders, which takes a while. Call it in a thread."""
        self._lines.read()

    def place_of(self, path: str, above: str = "", below: str = "") -> Place:
        """Return the place of a request's file; the path can be absolute, relative to a folder, or "".

        A request without a path, and one whose path is relative, belongs to the only folder. Where several folders are
        served, it belongs to the one that has its lines. Raises Problem for a path that no system has.
        """
        if len(path) > LONGEST_PATH:
            raise Problem(400, f"the path has {len(path)} characters; send one of at most {LONGEST_PATH}")
        if not self.folders:
            return Place("", path)
        if not path or "\0" in path or not PurePath(path).is_absolute():
            only = self.folders[0] if len(self.folders) == 1 else self._lines.folder_of(above, below)
            return Place(only, path)
        real = os.path.realpath(path)
        inside = [folder for folder in self.folders if real.startswith(folder.rstrip(os.sep) + os.sep)]
        if not inside:
            return Place("", path)
        folder = max(inside, key=len)
        return Place(folder, os.path.relpath(real, folder).replace(os.sep, "/"))


@attrs.frozen
class Served:
    """What is served: the engine's model, and the workspaces whose memory fills may use."""

    model: ModelInfo
    workspaces: Workspaces

    def check_name(self, name: str | None, *aliases: str) -> None:
        """Raise Problem for the name of another model. `aliases` are starts of names that mean ours too.

        Some clients infer the form of a prompt from the name, and for them `qwen2.5-coder:midspan` means ours.
        """
        known = ("default", *names_of(self.model))
        if name and name.endswith(f":{NAME}"):
            return
        if not name or name.removesuffix(":latest") in known or (aliases and name.startswith(aliases)):
            return
        raise Problem(404, f"the model {name[:80]!r} is not served here; name {NAME!r} or {self.model.name!r}")

    def fill(
        self,
        parts: Parts,
        stops: Sequence[str] = (),
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Fill:
        """Return the fill of a hole as all dialects ask for it; what only one names is its own to add.

        Raises Problem for a number out of its range.
        """
        place = self.workspaces.place_of(parts.path, parts.prefix, parts.suffix)
        return Fill(
            id=0,
            prefix=parts.prefix,
            suffix=parts.suffix,
            path=place.path,
            snippets=within_limits(parts.snippets),
            extent=extent_of(stops),
            budget_ms=DEFAULT_BUDGET_MS,
            temperature=temperature_of(temperature),
            top_p=top_p_of(top_p),
            seed=seed_of(seed),
            workspace=place.workspace,
        )


class Exchange(Protocol):
    """One request and its answer. `stream_type` is the media type of a streamed answer."""

    asked: Asked
    stream_type: str

    def whole(self, answer: Answer) -> object:
        """Return the answer as values of JSON or attrs objects."""
        ...

    def piece(self, text: str) -> bytes:
        """Return a part of a streamed answer."""
        ...

    def end(self, answer: Answer, text: str) -> bytes:
        """Return the last part of a streamed answer; `text` was not sent yet."""
        ...


Opener = Callable[[dict[str, Any], Served], Exchange]
Refusal = Callable[[Problem], object]


@attrs.frozen
class Dialect:
    """How a path is spoken."""

    open: Opener
    refusal: Refusal


def to_json(value: object) -> bytes:
    """Return compact JSON: llama.vim finds no text after a colon and a space."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return text.encode(errors="replace")


def event(value: object) -> bytes:
    """Return a server-sent event."""
    return b"data: " + to_json(value) + b"\n\n"


def _plain(value: object) -> object:
    if attrs.has(type(value)):
        return attrs.asdict(value)  # type: ignore[arg-type]  # attrs.has does not narrow it
    raise TypeError(type(value).__name__)
