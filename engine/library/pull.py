"""Pull a model of the catalog from the hub. A pull can be resumed, and every file is compared with its checksum.

The files arrive in the folder NAME.partial. Its midspan-pull.json says which commit they belong to and which files are
checked. When all are checked, the folder gets its final name. If a pull is interrupted, the next one continues at the
same byte.
"""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import attrs
import httpx2
from huggingface_hub import constants, get_session, hf_hub_url

from engine.bounds import HUB_S
from engine.errors import ModelError
from engine.library import store
from engine.library.catalog import CatalogModel
from engine.library.hub import (
    PLAIN,
    HubFile,
    HubListing,
    check_status,
    headers,
    hub_errors_explained,
    is_temporary,
    list_files,
)
from engine.library.store import ModelRecord, StoredFile
from engine.whole_files import make_folder, try_lock

PLAN_FILE = "midspan-pull.json"
# Signed addresses expire, and the hub does not serve 50 GB in one answer. So large files are requested in parts.
_PART_BYTES = 4 * 1024**3
_HTTP_PARTIAL = 206
_ATTEMPTS, _PAUSE_S = 3, 1.0
"""After a lost connection: how often it is tried again, and the first pause. Each one is twice as long."""


class PullProgress(Protocol):
    """Shows the progress of a pull. All numbers are bytes."""

    def begin(self, total: int, present: int) -> None:
        """The files have `total` bytes. `present` of them are here from an earlier pull."""

    def fetch(self, name: str) -> None:
        """The transfer of the file `name` begins."""

    def check(self, name: str) -> None:
        """The file `name` has arrived; the comparison with its checksum begins."""

    def advance(self, count: int) -> None:
        """`count` more bytes have arrived. A negative count means that so many must be fetched again."""


def free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of `folder`."""
    return shutil.disk_usage(folder).free


@attrs.frozen
class Puller:
    """Pulls models and reports to `progress`."""

    progress: PullProgress
    free_bytes: Callable[[Path], int] = free_bytes

    def pull(self, model: CatalogModel, accepted: bool = False) -> ModelRecord:
        """Pull `model` and return its record. `accepted` goes into the record: the user accepted the licence.

        Raises ModelError in one line. The received files are kept for the next pull, except damaged ones.
        """
        folder, partial = store.folder_for(model.name), store.partial_folder(model.name)
        with _disk_errors_explained(partial):
            make_folder(partial.parent)
            with _pull_lock(model, partial.with_name(f".{model.name}.lock")):
                record = store.read_record(folder / store.RECORD)
                if record is not None:
                    store.check(folder, record)
                    return record
                if folder.exists():
                    raise ModelError(
                        f"{folder} exists but was not pulled; remove it with: midspan models remove {model.name}"
                    )
                record = self._pull_files(model, partial, accepted)
                partial.rename(folder)
                return record

    def _pull_files(self, model: CatalogModel, partial: Path, accepted: bool) -> ModelRecord:
        earlier_plan = _earlier_plan(model, partial)
        listing = list_files(model, earlier_plan.commit if earlier_plan else model.revision)
        make_folder(partial)
        plan = earlier_plan or ModelRecord(
            model.name, model.hub, model.revision, listing.commit, model.licence, accepted
        )
        plan.write(partial / PLAN_FILE)
        self._begin(listing, partial)
        checked = {file.name: file for file in plan.files}
        for file in listing.files:
            if file.name not in checked or _size(partial / file.name) != file.size:
                self._fetch(model, listing.commit, file, partial)
                checked[file.name] = self._check(file, partial)
                attrs.evolve(plan, files=tuple(checked.values())).write(partial / PLAN_FILE)
        record = attrs.evolve(plan, accepted=accepted, files=tuple(checked[file.name] for file in listing.files))
        record.write(partial / store.RECORD)
        (partial / PLAN_FILE).unlink()
        return record

    def _begin(self, listing: HubListing, partial: Path) -> None:
        present = 0
        for file in listing.files:
            if (size := _size(partial / file.name)) > file.size:
                (partial / file.name).unlink()
            else:
                present += size
        missing, free = listing.size - present, self.free_bytes(partial)
        if missing > free:
            raise ModelError(
                f"the model needs {_gigabytes(missing)} more and {partial.parent} has room for {_gigabytes(free)}; "
                "make room, or set MIDSPAN_MODELS_DIR to a folder on another disk"
            )
        self.progress.begin(listing.size, present)

    def _fetch(self, model: CatalogModel, commit: str, file: HubFile, partial: Path) -> None:
        path = partial / file.name
        self.progress.fetch(file.name)
        path.touch()
        failures = 0
        with hub_errors_explained(model, commit):
            url = hf_hub_url(model.hub, file.name, revision=commit, endpoint=constants.ENDPOINT)
            while (present := _size(path)) < file.size:
                try:
                    self._fetch_part(url, path, present, file.size)
                    failure: Exception | None = None
                except httpx2.HTTPError as error:
                    if not is_temporary(error):
                        raise
                    failure = error
                if _size(path) > present:
                    failures = 0
                    continue
                failures += 1
                if failures > _ATTEMPTS:
                    raise failure or ModelError(f"{constants.ENDPOINT} sends no data of {file.name}; try again later")
                time.sleep(_PAUSE_S * 2 ** (failures - 1))

    def _fetch_part(self, url: str, path: Path, start: int, size: int) -> None:
        end = min(start + _PART_BYTES, size)
        part_headers = headers() | {"Range": f"bytes={start}-{end - 1}", **PLAIN}
        with get_session().stream("GET", url, headers=part_headers, timeout=HUB_S) as response:
            check_status(response)
            if response.status_code != _HTTP_PARTIAL:  # the server ignores Range and sends the whole file
                self.progress.advance(-start)
                start, end = 0, size
            with path.open("r+b") as stream:
                stream.seek(start)
                stream.truncate()
                for block in response.iter_raw():
                    start += len(block)
                    if start > end:
                        raise ModelError(
                            f"{constants.ENDPOINT} sends more than the {size} bytes of {path.name}; try again later"
                        )
                    stream.write(block)
                    self.progress.advance(len(block))

    def _check(self, file: HubFile, partial: Path) -> StoredFile:
        self.progress.check(file.name)
        path = partial / file.name
        sha256 = store.sha256_of(path)
        is_correct = sha256 == file.sha256 if file.sha256 else _git_sha1(path) == file.git_sha1
        if not is_correct:
            path.unlink()
            self.progress.advance(-file.size)
            raise ModelError(
                f"{file.name} arrived damaged: its checksum is not the hub's; it was deleted, pull it again"
            )
        return StoredFile(file.name, file.size, sha256)


def _earlier_plan(model: CatalogModel, partial: Path) -> ModelRecord | None:
    """Return the plan of an interrupted pull of the same revision; delete the files of any other pull."""
    if not partial.exists():
        return None
    plan = store.read_record(partial / PLAN_FILE)
    if plan is not None and (plan.hub, plan.revision) == (model.hub, model.revision):
        return plan
    shutil.rmtree(partial)
    return None


@contextmanager
def _pull_lock(model: CatalogModel, path: Path) -> Iterator[None]:
    """Hold the lock of a model's pull. The lock file stays, because removing it could let two processes in."""
    descriptor, held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), False
    try:
        with suppress(OSError):  # a disk without locks: then nobody can hold one
            held = not try_lock(descriptor)
        if held:
            raise ModelError(f"another process is pulling {model.name}; wait for it or stop it")
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors_explained(partial: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelError(
                f"the disk of {partial.parent} is full; the pulled part is kept: make room and pull again"
            ) from None
        raise ModelError(
            f"cannot write in {partial.parent}: {error.strerror or type(error).__name__}; "
            "set MIDSPAN_MODELS_DIR to a folder that you can write"
        ) from None


def _git_sha1(path: Path) -> str:
    """Return git's hash of the file's content, which the hub lists for small files."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
