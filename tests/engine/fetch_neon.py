"""Download an ARM Python, an emulator and a compiler to .editors/neon for `make test-neon`. `make neon` runs this."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "editors"))

from debian import Bundle, FetchError  # noqa: E402  # this module is in the folder of the editors' tests

SUITE = "trixie"
FOLDER = ROOT / ".editors" / "neon"
ARM = Bundle(FOLDER / "arm64", SUITE, "arm64")
PYTHON = ARM.root / "usr" / "bin" / "python3"
PACKAGES = ("python3", "python3-attr", "python3-numpy", "python3-pytest", "python3-safetensors")
_EMULATOR = Bundle(FOLDER / "qemu", SUITE)
EMULATOR = _EMULATOR.root / "usr" / "bin" / "qemu-aarch64"
COMPILER = FOLDER / "zig"
"""A folder for PYTHONPATH: `python -m ziglang cc` is clang, for every system."""
_ZIG = "ziglang==0.17.1"


def is_here() -> bool:
    """Return whether all was fetched."""
    return PYTHON.exists() and EMULATOR.exists() and (COMPILER / "ziglang").exists()


def fetch() -> None:
    """Download what is missing. Raises FetchError."""
    if not PYTHON.exists():
        ARM.fetch(PACKAGES, [])
    if not EMULATOR.exists():
        _EMULATOR.fetch(["qemu-user"], [])
    if not (COMPILER / "ziglang").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--target", str(COMPILER), _ZIG]).returncode:
            raise FetchError(f"pip cannot install {_ZIG}")
    print(f"fetched Python and qemu from Debian's {SUITE}, and {_ZIG}")


if __name__ == "__main__":
    try:
        fetch()
    except FetchError as error:
        sys.exit(f"make neon: {error}")
