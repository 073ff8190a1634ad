"""Bring a model of the catalog here: resumable, checked to the last byte, and nothing half-done is taken for a model.

Files are gathered in NAME.partial, beside midspan-pull.json, which says what commit they are of and which are checked.
When all are, the folder is renamed. Whatever stops a pull, the next one goes on at the byte where it was.
"""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import attrs
import httpx2
from huggingface_hub import constants, get_session, hf_hub_url, hf_raise_for_status

from engine.errors import ModelError
from engine.file_lock import try_lock
from engine.library import store
from engine.library.catalog import CatalogModel
from engine.library.hub import TIMEOUT_S, HubFile, HubListing, headers, is_passing, list_files, told
from engine.library.store import ModelRecord, StoredFile

PLAN = "midspan-pull.json"
# A request for a part may be long, but not endless: signed addresses expire, and the hub serves no 50 GB in one piece.
_PART_BYTES = 4 * 1024**3
_HTTP_PARTIAL = 206


class PullProgress(Protocol):
    """Whoever shows how a pull goes on. All numbers are bytes."""

    def begin(self, total: int, here: int) -> None:
        """All files have `total` together, of which `here` need not be fetched any more."""

    def fetch(self, name: str) -> None:
        """The file `name` is fetched now."""

    def check(self, name: str) -> None:
        """The file `name` is here, and compared with its checksum now."""

    def advance(self, count: int) -> None:
        """So many more are here; less than 0 where some have to be fetched anew."""


def free_bytes(folder: Path) -> int:
    """Return how many bytes the disk of `folder` has room for."""
    return shutil.disk_usage(folder).free


@attrs.frozen
class Puller:
    """Pulls models, telling `progress`. A lost connection is tried again `attempts` times, at first after `pause_s`."""

    progress: PullProgress
    free_bytes: Callable[[Path], int] = free_bytes
    attempts: int = 3
    pause_s: float = 1.0

    def pull(self, model: CatalogModel, accepted: bool = False) -> ModelRecord:
        """Bring `model` here and return its record; `accepted` says that the user took its licence, for the record.

        Raises ModelError, in one line; what has arrived by then is kept for the next pull, unless it is wrong.
        """
        folder, partial = store.folder_for(model.name), store.partial_folder(model.name)
        with _disk_told(partial):
            partial.parent.mkdir(parents=True, exist_ok=True)
            with _alone(model, partial.with_name(f".{model.name}.lock")):
                record = store.read_record(folder / store.RECORD)
                if record is not None:
                    store.check(folder, record)
                    return record
                if folder.exists():
                    raise ModelError(f"{folder} is there but was not pulled; midspan models remove {model.name}")
                record = self._gather(model, partial, accepted)
                partial.rename(folder)
                return record

    def _gather(self, model: CatalogModel, partial: Path, accepted: bool) -> ModelRecord:
        begun = _begun(model, partial)
        listing = list_files(model, begun.commit if begun else model.revision)
        partial.mkdir(exist_ok=True)
        plan = begun or ModelRecord(model.name, model.hub, model.revision, listing.commit, model.licence, accepted)
        plan.write(partial / PLAN)
        self._begin(listing, partial)
        checked = {file.name: file for file in plan.files}
        for file in listing.files:
            if file.name not in checked or _size(partial / file.name) != file.size:
                self._fetch(model, listing.commit, file, partial)
                checked[file.name] = self._check(file, partial)
                attrs.evolve(plan, files=tuple(checked.values())).write(partial / PLAN)
        record = attrs.evolve(plan, accepted=accepted, files=tuple(checked[file.name] for file in listing.files))
        record.write(partial / store.RECORD)
        (partial / PLAN).unlink()
        return record

    def _begin(self, listing: HubListing, partial: Path) -> None:
        here = 0
        for file in listing.files:
            if (size := _size(partial / file.name)) > file.size:
                (partial / file.name).unlink()
            else:
                here += size
        missing, free = listing.size - here, self.free_bytes(partial)
        if missing > free:
            raise ModelError(
                f"{_gigabytes(missing)} more are to come and {partial.parent} has room for {_gigabytes(free)}; "
                "make room, or set MIDSPAN_MODELS_DIR to a folder on another disk"
            )
        self.progress.begin(listing.size, here)

    def _fetch(self, model: CatalogModel, commit: str, file: HubFile, partial: Path) -> None:
        path = partial / file.name
        self.progress.fetch(file.name)
        path.touch()
        failures = 0
        with told(model, commit):
            url = hf_hub_url(model.hub, file.name, revision=commit, endpoint=constants.ENDPOINT)
            while (here := _size(path)) < file.size:
                try:
                    self._fetch_part(url, path, here, file.size)
                    failed: Exception | None = None
                except httpx2.HTTPError as error:
                    if not is_passing(error):
                        raise
                    failed = error
                if _size(path) > here:
                    failures = 0
                    continue
                failures += 1
                if failures > self.attempts:
                    raise failed or ModelError(f"{constants.ENDPOINT} sends nothing of {file.name}; try again later")
                time.sleep(self.pause_s * 2 ** (failures - 1))

    def _fetch_part(self, url: str, path: Path, start: int, size: int) -> None:
        end = min(start + _PART_BYTES, size)
        part = headers() | {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        with get_session().stream("GET", url, headers=part, timeout=TIMEOUT_S) as response:
            hf_raise_for_status(response)
            if response.status_code != _HTTP_PARTIAL:  # it sends the file from its beginning
                self.progress.advance(-start)
                start, end = 0, size
            with path.open("r+b") as stream:
                stream.seek(start)
                stream.truncate()
                for block in response.iter_bytes():
                    start += len(block)
                    if start > end:
                        raise ModelError(f"{constants.ENDPOINT} sends more of {path.name} than the {size} bytes it has")
                    stream.write(block)
                    self.progress.advance(len(block))

    def _check(self, file: HubFile, partial: Path) -> StoredFile:
        self.progress.check(file.name)
        path = partial / file.name
        sha256 = store.sha256_of(path)
        right = sha256 == file.sha256 if file.sha256 else _git_sha1(path) == file.git_sha1
        if not right:
            path.unlink()
            self.progress.advance(-file.size)
            raise ModelError(
                f"{file.name} arrived damaged: its checksum is not the hub's; it was dropped, pull again for a new one"
            )
        return StoredFile(file.name, file.size, sha256)


def _begun(model: CatalogModel, partial: Path) -> ModelRecord | None:
    """Return the plan of a pull that goes on; what is left of one for another revision goes."""
    if not partial.exists():
        return None
    plan = store.read_record(partial / PLAN)
    if plan is not None and (plan.hub, plan.revision) == (model.hub, model.revision):
        return plan
    shutil.rmtree(partial)
    return None


@contextmanager
def _alone(model: CatalogModel, path: Path) -> Iterator[None]:
    """Hold the lock of a model's pull. The file stays: taking it away would let two in."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not try_lock(descriptor):
            raise ModelError(f"another process is pulling {model.name} right now; let it finish, or stop it")
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _disk_told(partial: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelError(
                f"the disk of {partial.parent} is full; what was pulled is kept: make room and pull again"
            ) from None
        raise ModelError(
            f"cannot write in {partial.parent}: {error.strerror or type(error).__name__}; "
            "set MIDSPAN_MODELS_DIR to a folder that you can write"
        ) from None


def _git_sha1(path: Path) -> str:
    """Return git's name for the file's content; small files are listed by it."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
