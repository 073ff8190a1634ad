"""A process with little memory that loads a model's folder, again and again: a wrong config.json may ask for terabytes.

It reads the path of a folder from each line, and answers with a line: "ok", or the type and the text of the error.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from engine.errors import ModelError
from engine.models.load import load
from hardening.language_server import Broken

_MOST_BYTES = 3 << 30


class ModelReader:
    """The process, seen from the test."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def read(self, folder: Path) -> None:
        """Load a model. Raises Broken unless it is loaded, or refused in one line."""
        if self._process is None:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "hardening.model_reader"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self.close()
            raise Broken("the process that loads the model died")
        if (error := json.loads(answer)) is not None:
            raise Broken(error)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    for line in sys.stdin:
        print(json.dumps(_error(Path(line.rstrip("\n")))), flush=True)


def _error(folder: Path) -> str | None:
    """Return what is wrong with how a folder is refused."""
    try:
        load(str(folder), threads=1)
    except ModelError as error:
        return f"an error of several lines: {error}" if "\n" in str(error) else None
    except BaseException as error:  # A library's panic is no Exception.
        return f"{type(error).__name__}: {error}"[:300]
    return None


if __name__ == "__main__":
    _main()
