"""Fetch llama.cpp's server into .editors/llamacpp, for the test that talks to it. Run by `make llamacpp`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "editors"))

from debian import Bundle, FetchError  # noqa: E402  # lies beside the tests of the editors

SUITE = "forky"  # Debian's first with llama.cpp.
FOLDER = ROOT / ".editors" / "llamacpp"
SERVER = FOLDER / "root" / "usr" / "bin" / "llama-server"


def environment() -> dict[str, str]:
    """Return the environment in which the unpacked server finds its libraries and its processor's code.

    Its own folders of libraries lie where the packages would be installed, and here they are not.
    """
    libraries = next((FOLDER / "root" / "usr" / "lib").glob("*-linux-gnu"))
    backends = sorted((libraries / "ggml").glob("*/libggml-cpu*.so"))
    plain = next((path for path in backends if path.stem == "libggml-cpu-x64"), backends[0])
    return {"LD_LIBRARY_PATH": f"{libraries}:{libraries / 'llama'}", "GGML_BACKEND_PATH": str(plain)}


def fetch() -> None:
    """Leave a server that runs in .editors/llamacpp. Fetched once. Raises FetchError."""
    if not _version():
        Bundle(FOLDER, SUITE).fetch(["llama.cpp"], [str(SERVER.relative_to(FOLDER / "root"))])
        if not _version():
            raise FetchError(f"the server of llama.cpp from {SUITE} does not run; what is in the suite has changed")
    print(f"fetched llama.cpp {_version()}")


def _version() -> str:
    if not SERVER.exists():
        return ""
    done = subprocess.run([str(SERVER), "--version"], capture_output=True, text=True, env=environment())
    lines = (done.stdout + done.stderr).splitlines()
    return next((line.removeprefix("version: ") for line in lines if line.startswith("version: ")), "")


if __name__ == "__main__":
    try:
        fetch()
    except FetchError as error:
        sys.exit(f"make llamacpp: {error}")
