"""What a .gitignore says of a path, as git reads it.

A stranger may have written it, so no pattern goes back and forth in a name: "*a" twenty times over, and a name of a
hundred "a", kept pathspec's expressions busy for longer than anybody waits.
"""

import re
from collections.abc import Sequence
from fnmatch import translate

import attrs

MOST_PATTERNS = 1_000
"""The lines of a .gitignore that are read."""
_LONGEST_PATTERN = 400


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


_END = re.compile("(?!)")
"""Fits no name: git takes nothing for a set of characters that does not end."""
_ESCAPED = re.compile(r"\\(.)")
_SET = re.compile(r"\[[!^]?\]?[^\]]*\]")


@attrs.frozen
class IgnoreFile:
    """The patterns of a .gitignore. The last one that fits a path decides."""

    patterns: tuple[_Pattern, ...]

    @classmethod
    def of(cls, text: str) -> "IgnoreFile":
        """Read a .gitignore, as far as its first MOST_PATTERNS lines of usual length go."""
        lines = text.split("\n", MOST_PATTERNS)[:MOST_PATTERNS]
        patterns = (_pattern(line.removesuffix("\r")) for line in lines if len(line) <= _LONGEST_PATTERN)
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
