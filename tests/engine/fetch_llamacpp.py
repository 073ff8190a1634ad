"""Download llama.cpp's server to .editors/llamacpp for tests/engine/remote. `make llamacpp` runs this."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "editors"))

from debian import Bundle, FetchError  # noqa: E402  # this module is in the folder of the editors' tests

SUITE = "forky"  # the first Debian release with llama.cpp
FOLDER = ROOT / ".editors" / "llamacpp"
SERVER = FOLDER / "root" / "usr" / "bin" / "llama-server"


def environment(instructions: str = "x64") -> dict[str, str]:
    """Return the environment variables with which the unpacked server finds its libraries and its CPU backend.

    The server looks for them where the packages would be installed, and they are not installed. There is a backend for
    each set of instructions; the tests use the one that runs on every processor.
    """
    libraries = next((FOLDER / "root" / "usr" / "lib").glob("*-linux-gnu"))
    backends = sorted((libraries / "ggml").glob("*/libggml-cpu*.so"))
    backend = next((path for path in backends if path.stem == f"libggml-cpu-{instructions}"), backends[0])
    return {"LD_LIBRARY_PATH": f"{libraries}:{libraries / 'llama'}", "GGML_BACKEND_PATH": str(backend)}


def fetch() -> None:
    """Download the server to .editors/llamacpp, unless it is there and runs. Raises FetchError."""
    if not _version():
        Bundle(FOLDER, SUITE).fetch(["llama.cpp"], [str(SERVER.relative_to(FOLDER / "root"))])
        if not _version():
            raise FetchError(f"the server of llama.cpp from {SUITE} does not run; its packages have changed")
    print(f"fetched llama.cpp {_version()}")


def _version() -> str:
    if not SERVER.exists():
        return ""
    result = subprocess.run([str(SERVER), "--version"], capture_output=True, text=True, env=environment())
    lines = (result.stdout + result.stderr).splitlines()
    return next((line.removeprefix("version: ") for line in lines if line.startswith("version: ")), "")


if __name__ == "__main__":
    try:
        fetch()
    except FetchError as error:
        sys.exit(f"make llamacpp: {error}")
