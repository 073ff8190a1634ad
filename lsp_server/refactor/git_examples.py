"""Examples from git: the edits of the working tree."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import attrs

from lsp_server.languages.registry import language_for
from lsp_server.refactor.example import Example
from lsp_server.workspace.git import GitFailed, Repository
from lsp_server.workspace.reading import MAX_FILE_BYTES, decode, is_inside, read_bytes

_REGULAR = (b"100644", b"100755")
_MOST_CHANGED = 1_000
"""Files that are compared. So many changed files have more than one edit in common."""


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
            files.append(ChangedFile(one.path, Example(before, after)))
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
