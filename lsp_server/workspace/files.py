"""Which files a workspace has: what git tracks and does not ignore, or else what a walk finds.

All functions read the disk. Call them in a thread, never on the event loop.
"""

import itertools
import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import translate
from pathlib import Path, PurePosixPath

import attrs

from engine.bounds import LONGEST_PATTERN, MOST_PATTERNS
from engine.git import GitFailed, Repository
from engine.reading import is_inside, read_text
from engine.reading import walk as walk_files
from lsp_server.exclusion import why_secret
from lsp_server.languages.registry import language_for
from lsp_server.settings import Settings

_END = re.compile("(?!)")
"""Fits no name: git takes nothing for a set of characters that does not end."""
_ESCAPED = re.compile(r"\\(.)")
_SET = re.compile(r"\[[!^]?\]?[^\]]{0,255}+\]")
_NEVER_WALKED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Installed and generated files. Folders whose name begins with a dot are not walked either."""


@attrs.frozen
class _Pattern:
    """A line of a .gitignore. None in `parts` is "**": any number of folders. Without `anchored` a name decides."""

    parts: tuple[re.Pattern[str] | None, ...]
    ignores: bool
    only_folders: bool
    anchored: bool

    def fits(self, parts: Sequence[str]) -> bool:
        """Return whether a path fits, given its parts. It takes at most as many steps as their product."""
        wanted = self.parts
        if not self.anchored:
            return wanted[0] is None or wanted[0].match(parts[-1]) is not None
        # The last "**" takes one folder more whenever what follows it does not fit.
        at = part = 0
        again: tuple[int, int] | None = None
        while part < len(parts):
            one = wanted[at] if at < len(wanted) else _END
            if one is None:
                again = at, part
                at += 1
                continue
            if one.match(parts[part]) is not None:
                at, part = at + 1, part + 1
                continue
            if again is None:
                return False
            again = again[0], again[1] + 1
            at, part = again[0] + 1, again[1]
        # "a/**" fits what is in a, and not a.
        return at == len(wanted)


@attrs.frozen
class IgnoreFile:
    """The patterns of a .gitignore, read as git does. The last one that fits a path decides.

    A stranger may have written it, so no pattern goes back and forth in a name: "*a" twenty times over, and a name of a
    hundred "a", kept pathspec's expressions busy for longer than anybody waits.
    """

    patterns: tuple[_Pattern, ...]

    @classmethod
    def of(cls, text: str) -> "IgnoreFile":
        """Read a .gitignore, as far as its first MOST_PATTERNS lines of usual length go."""
        lines = text.split("\n", MOST_PATTERNS)[:MOST_PATTERNS]
        patterns = (_pattern(line.removesuffix("\r")) for line in lines if len(line) <= LONGEST_PATTERN)
        return cls(tuple(pattern for pattern in patterns if pattern is not None))

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """Return what the patterns say of a path below the file's folder; None if they say nothing."""
        parts = path.split("/")
        for pattern in reversed(self.patterns):
            if (is_folder or not pattern.only_folders) and pattern.fits(parts):
                return pattern.ignores
        return None


def _pattern(line: str) -> _Pattern | None:
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    ignores = not line.startswith("!")
    glob = line.removeprefix("!")
    if line.startswith("#") or not glob.strip("/"):
        return None
    only_folders = glob.endswith("/")
    glob = glob.removesuffix("/")
    parts = glob.removeprefix("/").split("/")
    return _Pattern(
        tuple(None if part == "**" else _name_pattern(part) for part in parts), ignores, only_folders, "/" in glob
    )


def _name_pattern(glob: str) -> re.Pattern[str]:
    """Return a pattern for one name. fnmatch's never goes back before a "*" once what follows it was found."""
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], glob)
    closed = _SET.sub("", plain)
    return _END if "[" in closed else re.compile(translate(plain.replace("[^", "[!")))


class IgnoreRules:
    """The .gitignore files of a folder, each read when a path below it is checked for the first time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._specs: dict[str, IgnoreFile | None] = {}

    def ignores(self, path: str) -> bool:
        """Return whether a file, or one of the folders on the way to it, is ignored."""
        parts = path.split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return any(self.ignores_folder(folder) for folder in folders) or self.ignores_itself(path, False)

    def ignores_folder(self, path: str) -> bool:
        """Return whether a folder is ignored, apart from the folders on the way to it."""
        name = path.rpartition("/")[2]
        return name.startswith(".") or name in _NEVER_WALKED or self.ignores_itself(path, True)

    def ignores_itself(self, path: str, is_folder: bool) -> bool:
        """Return whether a pattern ignores a path, apart from the folders on the way to it."""
        # The nearest .gitignore that says anything about the path decides, as in git.
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                inside = path[len(folder) + 1 :] if folder else path
                said = spec.ignores(inside, is_folder)
                if said is not None:
                    return said
        return False

    def _spec(self, folder: str) -> IgnoreFile | None:
        if folder not in self._specs:
            text = read_text(self._folder, f"{folder}/.gitignore" if folder else ".gitignore")
            self._specs[folder] = IgnoreFile.of(text) if text is not None else None
        return self._specs[folder]


def walk(folder: str) -> list[str]:
    """Return the paths of the files below a folder that no .gitignore ignores, those nearest to it first."""
    rules = IgnoreRules(folder)
    return [path for path in walk_files(folder, rules.ignores_folder) if not rules.ignores_itself(path, False)]


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
    return sorted(rules.allowed(folder, _list(folder)), key=distance_from(near))[:MAX_FILES]


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
    return Changes(sorted(present, key=distance_from(near)), list(gone))


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
        return Repository.of(folder).files(*paths)
    except GitFailed as error:
        _logger.debug("git lists no files (%s); the folder is walked", error.code)
        return None


def _is_at_or_below(path: str, missing: Collection[str]) -> bool:
    while path:
        if path in missing:
            return True
        path = path.rpartition("/")[0]
    return False


def distance_from(near: str) -> Callable[[str], tuple[int, str]]:
    """Return a sort key: how many folders are between a file and `near`, then the path."""
    near_folders = near.split("/")[:-1]

    def key(path: str) -> tuple[int, str]:
        folders = path.split("/")[:-1]
        pairs = zip(folders, near_folders, strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return len(folders) + len(near_folders) - 2 * common, path

    return key
