"""Fetching: the archive of a pinned package, by name and version, from the registry that its manifest entry names."""

import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import attrs

from engine.errors import MidspanError

Split = Literal["train", "held-out"]

_DEB_SRC = "apt knows no source packages; add a deb-src entry to its sources and run `apt-get update`"


class CorpusError(MidspanError):
    """A manifest or package that is wrong or out of reach, or a corpus that is missing."""

    code = "corpus"


@attrs.frozen
class Package:
    """One line of the manifest: where a package comes from, its pin, its licence, and what it serves."""

    registry: str
    name: str
    version: str
    licence: str
    split: Split


def fetch(packages: list[Package], folder: Path, workers: int = 4) -> list[tuple[Package, Path]]:
    """Download what `folder` lacks; return each package with its archive. One that fails is reported and left out."""
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda package: _archive(package, folder), packages))
    pairs = [(package, path) for package, path in zip(packages, found, strict=True) if isinstance(path, Path)]
    failed = [(package, reason) for package, reason in zip(packages, found, strict=True) if isinstance(reason, str)]
    for package, reason in failed:
        if reason != _DEB_SRC:
            what = f"{package.name} {package.version} from {package.registry}"
            print(f"corpus: could not fetch {what}; left out: {reason}")
    unlisted = sum(reason == _DEB_SRC for _, reason in failed)
    if unlisted:
        print(f"corpus: could not fetch {unlisted} packages from debian-source; left out: {_DEB_SRC}")
    if not pairs:
        raise CorpusError("no package could be fetched; check that the package registries can be reached")
    return pairs


def _archive(package: Package, folder: Path) -> Path | str:
    """Return the archive, or why there is none."""
    place = folder / package.registry / f"{package.name.replace('/', '+')}@{package.version}"
    archive = _largest(place)
    if archive is not None:
        return archive
    place.mkdir(parents=True, exist_ok=True)
    reason = _FETCHERS[package.registry](package, place)
    return _largest(place) or reason or "nothing came"


def _largest(place: Path) -> Path | None:
    """The archive lies beside small files: a source package's description, a signature."""
    files = [path for path in place.glob("*") if path.suffix not in (".dsc", ".asc", ".part")]
    return max(files, key=lambda path: path.stat().st_size, default=None)


def _run(place: Path, *command: str) -> str:
    """Run and return the line of stderr that tells why it failed; empty when it went well."""
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, timeout=600, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"]
    first_of_apt = next((line for line in lines if line.startswith("E: ")), lines[-1])
    return first_of_apt if done.returncode else ""


def _from_pypi(package: Package, place: Path) -> str:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", f"{package.name}=={package.version}"]
    reason = _run(place, *pip, "--only-binary=:all:")
    return reason and _run(place, *pip, "--no-binary=:all:", "--no-build-isolation")


def package_index() -> str:
    """Return the address of the package index that pip would ask. Raises OSError where there is no pip.

    pip is asked in processes of its own: once it is imported, setuptools refuses to be, which torch.compile needs.
    """
    configured = ["-m", "pip", "config", "get", "global.index-url"]
    by_default = ["-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"]
    found = os.environ.get("PIP_INDEX_URL") or _said(*configured) or _said(*by_default)
    if not found:
        raise OSError(f"{sys.executable} has no pip, which knows where packages are; install it")
    return found.rstrip("/")


def _said(*arguments: str) -> str:
    """Return what a Python process prints, "" where it fails."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False).stdout.strip()


def _from_pypi_sdist(package: Package, place: Path) -> str:
    """Fetch the file that the index lists: pip itself would run the package's build for its metadata."""
    normal = re.sub(r"[-_.]+", "-", package.name).lower()
    try:
        page = f"{package_index()}/{normal}/"
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'href="([^"#]+\.tar\.gz)(?:#[^"]*)?"', answer.read().decode())
        wanted = f"{normal}-{package.version}.tar.gz"
        for link in links:
            name = urllib.parse.unquote(link.rsplit("/", 1)[-1])
            if re.sub(r"[-_]+", "-", name).lower() == wanted:
                part = place / f"{name}.part"
                urllib.request.urlretrieve(urllib.parse.urljoin(page, link), part)
                part.rename(place / name)
                return ""
    except OSError as error:
        return str(error)
    return "the index has no such sdist"


def _from_npm(package: Package, place: Path) -> str:
    return _run(place, "npm", "pack", "--silent", f"{package.name}@{package.version}")


def _from_debian(package: Package, place: Path) -> str:
    return _run(place, "apt-get", "-qq", "download", f"{package.name}={package.version}")


def _from_debian_source(package: Package, place: Path) -> str:
    wanted = f"{package.name}={package.version}"
    reason = _run(place, "apt-get", "-qq", "source", "--download-only", "--tar-only", wanted)
    return _DEB_SRC if "deb-src" in reason else reason


_FETCHERS = {
    "pypi": _from_pypi,
    "pypi-sdist": _from_pypi_sdist,
    "npm": _from_npm,
    "debian": _from_debian,
    "debian-source": _from_debian_source,
}
REGISTRIES = tuple(_FETCHERS)
