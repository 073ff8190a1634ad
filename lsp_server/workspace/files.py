"""Which files a workspace has: what git tracks and does not ignore, or else what a walk finds.

All functions read the disk. Call them in a thread, never on the event loop.
"""

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

import attrs

from lsp_server.exclusion import why_secret
from lsp_server.languages.registry import language_for
from lsp_server.settings import Settings
from lsp_server.workspace.git import GitFailed, Repository
from lsp_server.workspace.reading import is_inside
from lsp_server.workspace.walk import IgnoreRules, walk


@attrs.frozen
class Rules:
    """The settings that decide what is learned."""

    exclude: tuple[str, ...]
    languages_off: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> "Rules":
        return cls(settings.exclude, frozenset(name for name, on in settings.languages.items() if not on))

    def language_of(self, folder: str, path: str) -> str | None:
        """Return the id of a file's language; None for a file that must not be learned. The file is not opened."""
        if not is_inside(path):
            return None
        language = language_for("", path)
        if not language.extensions or language.id in self.languages_off:
            return None
        return None if why_secret(f"{folder}/{path}", self.exclude) else language.id

    def allowed(self, folder: str, paths: Iterable[str]) -> list[str]:
        """Return the paths that may be learned."""
        return [path for path in paths if self.language_of(folder, path) is not None]


_logger = logging.getLogger(__name__)

MAX_FILES = 20_000
_FEW = 100
"""So many paths fit on git's command line on every system. For more, all files are listed."""


@attrs.frozen
class Changes:
    """What changed on the disk: files to read again or for the first time, and files that are gone."""

    present: list[str]
    gone: list[str]


def learnable_files(folder: str, rules: Rules, near: str) -> list[str]:
    """Return the paths of the files to learn, at most MAX_FILES: first the folder of `near`, then by distance."""
    return sorted(rules.allowed(folder, _list(folder)), key=_distance_from(near))[:MAX_FILES]


def examine(folder: str, changed: Collection[str], known: Collection[str], rules: Rules, near: str) -> Changes:
    """Look at the paths that changed. `known` are the files that are learned already; "" is the folder itself.

    A changed folder or .gitignore can change everything, so then all files are listed again.
    """
    full = {path: Path(folder, path) for path in changed}
    files = [path for path in changed if _is(full[path].is_file)]
    known_files = [path for path in files if path in known]
    if any(PurePosixPath(path).name == ".gitignore" or _is(full[path].is_dir) for path in changed):
        every = learnable_files(folder, rules, near)
        gone = set(known).difference(every)
        present = {*known_files, *every}.difference(gone, set(known).difference(known_files))
    else:
        missing = set(changed).difference(files)
        gone = {path for path in known if missing and _is_at_or_below(path, missing)}
        present = {*known_files, *_listed(folder, rules.allowed(folder, (path for path in files if path not in known)))}
    return Changes(sorted(present, key=_distance_from(near)), list(gone))


def _is(kind: Callable[[], bool]) -> bool:
    """Return what is asked of a path; False for one that the system cannot have, such as one that is too long."""
    try:
        return kind()
    except (OSError, ValueError):
        return False


def _listed(folder: str, paths: Sequence[str]) -> Collection[str]:
    """Return the paths that are among the files of the folder."""
    if len(paths) > _FEW:
        return set(paths).intersection(_list(folder))
    return _list_among(folder, paths) if paths else ()


def _list(folder: str) -> list[str]:
    # A folder that git ignores, inside a repository, has no files for git. Its user has opened it all the same.
    return _ask_git(folder) or walk(folder)


def _list_among(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the paths that `_list` would return too."""
    tracked = _ask_git(folder, paths)
    if tracked or _ask_git(folder):
        return [path for path in paths if path in set(tracked or ())]
    ignore = IgnoreRules(folder)
    return [path for path in paths if not ignore.ignores(path)]


def _ask_git(folder: str, paths: Sequence[str] = ()) -> list[str] | None:
    """Return the files that git tracks, or neither tracks nor ignores; None without git or a repository."""
    try:
        options = ("-z", "--cached", "--others", "--exclude-standard", "--", *paths)
        listing = Repository.of(folder).ask("ls-files", *options)
    except GitFailed as error:
        _logger.debug("git lists no files (%s); the folder is walked", error.code)
        return None
    return list(dict.fromkeys(_names(listing)))


def _names(listing: bytes) -> Iterable[str]:
    # A listing that was too long has no whole name at its end.
    for name in listing.split(b"\0")[:-1]:
        try:
            path = name.decode()
        except UnicodeDecodeError:
            continue  # no message can name it
        if path and not path.endswith("/"):  # a repository inside this one
            yield path


def _is_at_or_below(path: str, missing: Collection[str]) -> bool:
    while path:
        if path in missing:
            return True
        path = path.rpartition("/")[0]
    return False


def _distance_from(near: str) -> Callable[[str], tuple[int, str]]:
    """Return a sort key: how many folders are between a file and `near`, then the path."""
    near_folders = near.split("/")[:-1]

    def key(path: str) -> tuple[int, str]:
        folders = path.split("/")[:-1]
        pairs = zip(folders, near_folders, strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return len(folders) + len(near_folders) - 2 * common, path

    return key
