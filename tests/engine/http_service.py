"""`midspan serve` as a real process over a real engine, for the tests that ask it over HTTP."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2

_READY = re.compile(r"midspan serve: (\S+) answers with")
_PATIENCE_S = 60.0
PREFIX, SUFFIX = "def area(width, height):\n    return ", "\n\n\nprint(area(2, 3))\n"


@attrs.define
class HttpService:
    """A running server. `lines` is what it wrote to stderr."""

    url: str
    process: subprocess.Popen[str]
    lines: list[str]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def post(self, path: str, body: object, **headers: str) -> httpx2.Response:
        return self.client().post(path, json=body, headers={name.replace("_", "-"): v for name, v in headers.items()})

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.client().get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=_PATIENCE_S, trust_env=False, verify=False)

    def metric(self, name: str, **headers: str) -> float:
        """Return a number of /metrics; 0 for one that is not there yet."""
        text = self.get("/metrics", **headers).text
        values = re.findall(rf"^midspan_{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(values[0]) if values else 0.0


@contextmanager
def http_service(model: Path, *arguments: str, **environment: str) -> Iterator[HttpService]:
    """Run the command on a free port. Its engine is the one of the runtime folder in the environment."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "engine.cli", "serve", "--port", "0", "--model", str(model), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    lines: list[str] = []
    ready = threading.Event()
    threading.Thread(target=_read, args=(process, lines, ready), daemon=True).start()
    try:
        assert ready.wait(_PATIENCE_S), "".join(lines)
        found = [match for line in lines if (match := _READY.search(line))]
        assert found, "".join(lines)
        yield HttpService(found[0][1], process, lines)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_PATIENCE_S)


def _read(process: subprocess.Popen[str], lines: list[str], ready: threading.Event) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if _READY.search(line):
            ready.set()
    ready.set()


def infill(**fields: Any) -> dict[str, Any]:
    """Return what llama.vim sends for a hole, with other or further fields."""
    return {
        "id_slot": 0,
        "input_prefix": PREFIX[: -len("    return ")],
        "input_suffix": SUFFIX,
        "input_extra": [{"text": "def volume(a, b, c):\n    return a * b * c\n", "time": 1.5, "filename": "solid.py"}],
        "prompt": "    return ",
        "n_predict": 8,
        "stop": [],
        "n_indent": 4,
        "top_k": 40,
        "top_p": 0.9,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "cache_prompt": True,
        "t_max_prompt_ms": 30_000,
        "t_max_predict_ms": 30_000,
        "response_fields": [
            "content",
            "timings/prompt_n",
            "timings/prompt_ms",
            "timings/prompt_per_token_ms",
            "timings/prompt_per_second",
            "timings/predicted_n",
            "timings/predicted_ms",
            "timings/predicted_per_token_ms",
            "timings/predicted_per_second",
            "truncated",
            "tokens_cached",
        ],
        **fields,
    }
