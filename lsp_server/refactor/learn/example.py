"""An example of an edit: a text before it and after it, a whole file or a piece of code."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from engine.bounds import MAX_FILE_BYTES
from engine.errors import MidspanError
from engine.git import GitFailed, Repository
from engine.reading import decode, is_inside, read_bytes
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.node import Node
from lsp_server.refactor.code.syntax import Syntax, parse
from lsp_server.refactor.code.traits import traits_of

_CLAUSES = ("catch", "except")
_REGULAR = (b"100644", b"100755")
_MOST_CHANGED = 1_000
"""Files that are compared. So many changed files have more than one edit in common."""


class NoRule(MidspanError):
    """The examples give no rule: they are equal, do not parse, or say too little."""

    code = "no-rule"


@attrs.frozen
class Example:
    """A text before and after an edit: a whole file or a piece of code. `path` is the file's, "" if there is none."""

    before: str
    after: str
    path: str = ""


def parsed(example: Example, language: Language) -> tuple[Syntax, Syntax]:
    """Return the syntax of both sides, with what a piece of code needs around it. Line ends are "\\n".

    If both sides have errors whatever is around them, those of the texts as they are are returned. Raises NoRule if
    they cannot be parsed at all.
    """
    tried = list(_tried(example, _surroundings(language), language))
    place = next((one for one in tried if not one.errors), tried[0])
    return place.before, place.after


@attrs.frozen
class InContext:
    """Both sides of a piece of code where it may be, and where the code begins in them, in UTF-8 bytes."""

    before: Syntax
    after: Syntax
    start: int

    @property
    def errors(self) -> int:
        """The number of syntax errors on both sides."""
        return self.before.errors + self.after.errors


def _tried(example: Example, surroundings: Iterable[tuple[str, str]], language: Language) -> Iterator[InContext]:
    """Yield both sides between each of the surroundings, up to the first in which they have no syntax errors."""
    for start, end in surroundings:
        before, after = (
            _parsed(start + text.replace("\r\n", "\n") + end, language) for text in (example.before, example.after)
        )
        place = InContext(before, after, len(start))
        yield place
        if not place.errors:
            return


def in_contexts(example: Example, language: Language) -> Iterator[InContext]:
    """Yield the syntax of a piece of code wherever its language may have such: first as expression or statement.

    Raises NoRule if it cannot be parsed at all.
    """
    first = example.before.lstrip()
    # Go reads a call at the top of a file as a conversion to a type.
    surroundings = list(_surroundings(language))
    is_part = language.id == "go" and not first.startswith(("package", "func ", "type ", "import"))
    # PHP reads what is outside of its tags as text.
    if is_part or (language.id == "php" and "<?" not in first):
        surroundings = surroundings[2:]
    yield from (one for one in _tried(example, surroundings, language) if not one.errors)
    code, is_clause = Example(example.before.strip(), example.after.strip()), first.startswith(_CLAUSES)
    for one in traits_of(language.id).contexts:
        if is_clause == one[0].startswith("try"):
            (place,) = _tried(code, (one,), language)
            if not place.errors and (is_clause or _is_one_node(place, code)):
                yield place


def _is_one_node(place: InContext, code: Example) -> bool:
    """Return whether each side is one node of what it was put into."""
    for syntax, text in ((place.before, code.before), (place.after, code.after)):
        nodes = own_nodes(syntax, text, place.start)
        size = len(text.replace("\r\n", "\n").encode("utf-8", "surrogatepass"))
        if len(nodes) != 1 or nodes[0].end - place.start != size:
            return False
    return True


def own_nodes(syntax: Syntax, text: str, start: int) -> list[Node]:
    """Return the outermost named nodes of a piece of code, without what was put around it from byte `start` on."""
    code = text.replace("\r\n", "\n").strip().encode("utf-8", "surrogatepass")
    start = syntax.data.find(code, start)
    waiting, nodes = [syntax.root], list[Node]()
    while waiting:
        node = waiting.pop()
        is_own = start <= node.start and node.end <= start + len(code) + 1 and node.parent is not None
        if is_own and node.named:
            nodes.append(node)
        else:
            waiting.extend(reversed(node.children))
    return nodes


def _surroundings(language: Language) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield "", "\n"
    traits = traits_of(language.id)
    if traits.around is not None:
        start, end = traits.around
        yield start, end
        if traits.ends_statements:
            yield start, f";{end}"


def _parsed(text: str, language: Language) -> Syntax:
    syntax = parse(text.encode("utf-8", "surrogatepass"), language)
    if syntax is None:
        raise NoRule(
            f"no rule: {language.id} has no grammar here, or the example is too deep or takes too long to parse"
        )
    return syntax


@attrs.frozen
class ChangedFile:
    """A file that git tracks, as it was and as it is. `path` is from the root of the repository."""

    path: str
    example: Example


@attrs.frozen
class _Tracked:
    """A file of a revision: `blob` names its content there."""

    path: str
    blob: str
    data: bytes


def changed_files(folder: Path, revision: str) -> list[ChangedFile]:
    """Return the tracked files whose text differs from a revision, by path. Raises GitFailed.

    The files are compared here, as they are on the disk: git would run what a repository names as a filter.
    """
    here = Repository.of(str(folder))
    repository = Repository(here.root, here.root)
    try:
        # A revision that begins with "-" would be an option.
        asked = ("--verify", "--end-of-options", f"{revision}^{{commit}}")
        commit = repository.ask("rev-parse", *asked).decode().strip()
    except GitFailed as error:
        raise GitFailed(f"{error}; give a revision of this repository, such as HEAD") from None
    listing = repository.ask("ls-tree", "-r", "-z", "--full-tree", commit)
    changed = sorted(_changed(repository.root, listing), key=lambda one: one.path)[:_MOST_CHANGED]
    texts = dict(_texts(repository, {one.blob for one in changed}))
    files: list[ChangedFile] = []
    for one in changed:
        before, after = texts.get(one.blob), decode(one.data)
        if before is None or after is None:
            continue
        if "\r\n" in after and "\r\n" not in before:  # git converts line ends for some
            before = before.replace("\n", "\r\n")
        if before != after:
            files.append(ChangedFile(one.path, Example(before, after, one.path)))
    return files


def _changed(root: str, listing: bytes) -> Iterator[_Tracked]:
    """Yield the regular files of known languages whose bytes are others than in the revision."""
    for entry in listing.split(b"\0")[:-1]:
        about, _, name = entry.partition(b"\t")
        mode, _, blob = about.partition(b" blob ")
        path = name.decode("utf-8", "replace")
        if mode not in _REGULAR or not is_inside(path) or language_for("", path).grammar is None:
            continue
        data = read_bytes(root, path)
        if data is not None and _name_of(data, len(blob)) != blob.decode():
            yield _Tracked(path, blob.decode(), data)


def _name_of(data: bytes, length: int) -> str:
    """Return the name that git gives to a file's content: SHA-1 or, in newer repositories, SHA-256."""
    content = b"blob %d\0" % len(data) + data
    digest = hashlib.sha1(content, usedforsecurity=False) if length == 40 else hashlib.sha256(content)
    return digest.hexdigest()


def _texts(repository: Repository, blobs: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of blobs as they are in the repository. Large ones, binary ones and missing ones are left out."""
    asked = "".join(f"{blob}\n" for blob in sorted(blobs)).encode()
    if not asked:
        return
    small = list[str]()
    for line in repository.ask("cat-file", "--batch-check", stdin=asked).decode("ascii", "replace").splitlines():
        blob, _, about = line.partition(" ")
        kind, _, size = about.partition(" ")
        if kind == "blob" and size.isdecimal() and int(size) <= MAX_FILE_BYTES:
            small.append(blob)
    answer = repository.ask(
        "cat-file",
        "--batch",
        stdin="".join(f"{blob}\n" for blob in small).encode(),
        most_bytes=(MAX_FILE_BYTES + 200) * max(len(small), 1),
    )
    start = 0
    for blob in small:
        end = answer.find(b"\n", start)
        length = answer[start:end].rpartition(b" ")[2]
        if end < 0 or not length.isdigit():
            return
        text = decode(answer[end + 1 : end + 1 + int(length)])
        start = end + 2 + int(length)
        if text is not None:
            yield blob, text
