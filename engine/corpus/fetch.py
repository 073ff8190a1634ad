"""Fetches the archive of a pinned package, by name and version, from the registry that its manifest entry names."""

import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, get_args

import attrs

from engine.errors import MidspanError

Split = Literal["held-out", "judge", "train"]
"""`judge` is code first published after the training data of every model that is measured."""
SPLITS: tuple[Split, ...] = get_args(Split)
"""In the order in which they own files: a later split gives up what an earlier one has."""

_DEB_SRC = "apt knows no source packages; add a deb-src entry to its sources and run `apt-get update`"


class CorpusError(MidspanError):
    """A wrong manifest, a package that cannot be fetched, or a missing corpus."""

    code = "corpus"


@attrs.frozen
class Package:
    """One entry of the manifest: registry, name, pinned version, licence and split."""

    registry: str
    name: str
    version: str
    licence: str
    split: Split


def fetch(packages: list[Package], folder: Path, workers: int = 4) -> list[tuple[Package, Path]]:
    """Download what `folder` lacks and return each package with its archive.

    A package that fails is reported and left out. Raises CorpusError if every package fails.
    """
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(lambda package: _archive(package, folder), packages))
    pairs = [(package, path) for package, path in zip(packages, results, strict=True) if isinstance(path, Path)]
    failed = [(package, reason) for package, reason in zip(packages, results, strict=True) if isinstance(reason, str)]
    for package, reason in failed:
        if reason != _DEB_SRC:
            label = f"{package.name} {package.version} from {package.registry}"
            print(f"corpus: could not fetch {label}; left out: {reason}")
    unlisted = sum(reason == _DEB_SRC for _, reason in failed)
    if unlisted:
        print(f"corpus: could not fetch {unlisted} packages from debian-source; left out: {_DEB_SRC}")
    if not pairs:
        raise CorpusError("no package could be fetched; check that the package registries can be reached")
    return pairs


def _archive(package: Package, folder: Path) -> Path | str:
    """Return the archive, or the reason why there is none."""
    directory = folder / package.registry / f"{package.name.replace('/', '+')}@{package.version}"
    archive = _largest(directory)
    if archive is not None:
        return archive
    directory.mkdir(parents=True, exist_ok=True)
    reason = _FETCHERS[package.registry](package, directory)
    return _largest(directory) or reason or "nothing came"


def _largest(directory: Path) -> Path | None:
    """Return the largest file: the archive, next to small files such as a description or a signature."""
    files = [path for path in directory.glob("*") if path.suffix not in (".dsc", ".asc", ".part")]
    return max(files, key=lambda path: path.stat().st_size, default=None)


def _run(directory: Path, *command: str) -> str:
    """Run a command; return the line of stderr with the reason if it fails, else an empty text."""
    try:
        process = subprocess.run(command, cwd=directory, capture_output=True, timeout=600, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = process.stderr.strip().splitlines() or [f"{command[0]} ended with {process.returncode}"]
    reason = next((line for line in lines if line.startswith("E: ")), lines[-1])
    return reason if process.returncode else ""


def _from_pypi(package: Package, directory: Path) -> str:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", f"{package.name}=={package.version}"]
    reason = _run(directory, *pip, "--only-binary=:all:")
    return reason and _run(directory, *pip, "--no-binary=:all:", "--no-build-isolation")


def package_index() -> str:
    """Return the URL of pip's package index. Raises OSError if there is no pip.

    pip runs in processes of its own: once pip is imported here, setuptools cannot be imported, and torch.compile needs
    that.
    """
    configured = ["-m", "pip", "config", "get", "global.index-url"]
    by_default = ["-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"]
    url = os.environ.get("PIP_INDEX_URL") or _output_of(*configured) or _output_of(*by_default)
    if not url:
        raise OSError(f"{sys.executable} has no pip, which knows where packages are; install it")
    return url.rstrip("/")


def _output_of(*arguments: str) -> str:
    """Return what a Python process prints, "" if it fails."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False).stdout.strip()


def _from_pypi_sdist(package: Package, directory: Path) -> str:
    """Fetch the file that the index lists. pip would run the package's build to read its metadata."""
    normal = re.sub(r"[-_.]+", "-", package.name).lower()
    try:
        page = f"{package_index()}/{normal}/"
        with urllib.request.urlopen(page, timeout=60) as response:
            links = re.findall(r'href="([^"#]+\.tar\.gz)(?:#[^"]*)?"', response.read().decode())
        expected = f"{normal}-{package.version}.tar.gz"
        for link in links:
            name = urllib.parse.unquote(link.rsplit("/", 1)[-1])
            if re.sub(r"[-_]+", "-", name).lower() == expected:
                part = directory / f"{name}.part"
                urllib.request.urlretrieve(urllib.parse.urljoin(page, link), part)
                part.rename(directory / name)
                return ""
    except OSError as error:
        return str(error)
    return "the index has no such sdist"


def _from_npm(package: Package, directory: Path) -> str:
    return _run(directory, "npm", "pack", "--silent", f"{package.name}@{package.version}")


def _from_debian(package: Package, directory: Path) -> str:
    return _run(directory, "apt-get", "-qq", "download", f"{package.name}={package.version}")


def _from_debian_source(package: Package, directory: Path) -> str:
    pinned = f"{package.name}={package.version}"
    reason = _run(directory, "apt-get", "-qq", "source", "--download-only", "--tar-only", pinned)
    return _DEB_SRC if "deb-src" in reason else reason


_FETCHERS = {
    "pypi": _from_pypi,
    "pypi-sdist": _from_pypi_sdist,
    "npm": _from_npm,
    "debian": _from_debian,
    "debian-source": _from_debian_source,
}
REGISTRIES = tuple(_FETCHERS)
