"""llama.cpp's server as a peer: its prompt cache is on, one slot, the fastest backend for this processor."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs

from benchmarks.peers.peer import TOKENS, Question, Took
from benchmarks.peers.peer_engine import start_process

_TESTS = Path(__file__).resolve().parents[2] / "tests" / "engine"
sys.path.append(str(_TESTS))

from fetch_llamacpp import SERVER, environment  # this module is in the folder of the engine's tests

from benchmarks.peers.random_gguf import Llama, write_random_gguf
from engine.errors import MidspanError

_START_S = 120.0
_CONTEXT = 2048
_BACKENDS = {
    "sapphirerapids": {"amx_int8", "amx_tile", "avx512_bf16"},
    "zen4": {"avx512_vnni", "avx512_bf16", "avx512vbmi"},
    "icelake": {"avx512_vnni", "avx512vbmi"},
    "cascadelake": {"avx512_vnni"},
    "skylakex": {"avx512bw", "avx512vl"},
    "alderlake": {"avx_vnni", "avx2"},
    "haswell": {"avx2", "fma"},
}
"""The best first, with the processor's flags that each needs, as llama.cpp's build names them."""


class PeerError(MidspanError):
    """A peer does not start or does not answer."""

    code = "peer"


@attrs.frozen
class Answered:
    """A request's milliseconds from here to here, and the server's own numbers: tokens and ms of prompt and answer."""

    ms: float
    prompt_tokens: int
    prompt_ms: float
    tokens: int
    tokens_ms: float


class LlamaCppPeer:
    """Implements peer.Peer."""

    def __init__(self, shape: Llama, path: Path, process: subprocess.Popen[bytes], port: int, kind: str) -> None:
        self.name = f"llama.cpp, {shape.name}, {kind}"
        self._process, self._path = process, path
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)

    @classmethod
    async def start(cls, shape: Llama, folder: Path, threads: int, kind: str = "Q8_0") -> "LlamaCppPeer":
        """Write a model of this shape into `folder` and start the server. Raises PeerError in one line."""
        if not SERVER.exists():
            raise PeerError("llama.cpp is not here; `make llamacpp` fetches it")
        path = folder / f"{shape.name}-{kind}.gguf"
        await asyncio.to_thread(write_random_gguf, path, shape, kind)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [str(SERVER), "--model", str(path), "--host", "127.0.0.1", "--port", str(port), "--parallel", "1"]
        command += ["--threads", str(threads), "--ctx-size", str(_CONTEXT)]
        process = start_process(command, {**os.environ, **environment(backend())}, folder / f"{shape.name}.log")
        peer = cls(shape, path, process, port, kind)
        deadline = time.monotonic() + _START_S
        while not peer._is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                await peer.close()
                raise PeerError(f"llama.cpp does not start with {shape.name}")
            await asyncio.sleep(0.1)
        return peer

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def disk(self) -> int:
        return self._path.stat().st_size

    async def fill(self, question: Question) -> Took:
        answered = await self.complete(question.tokens, TOKENS)
        return Took(answered.ms, answered.tokens, answered.prompt_tokens)

    async def passes(self, tokens: list[int], rows: int) -> float:
        """Return the milliseconds of one pass of `rows` rows after `tokens`, as the server measures it."""
        if rows == 1:
            answered = await self.complete(tokens, TOKENS)
            return answered.tokens_ms / answered.tokens
        await self.complete(tokens, 1)
        own = [(token + rows) % 8000 + 300 for token in tokens[:rows]]
        answered = await self.complete([*tokens, *own], 1)
        return answered.prompt_ms * rows / answered.prompt_tokens

    async def complete(self, tokens: list[int], count: int) -> Answered:
        """Let the server read `tokens` and write `count`. Raises PeerError."""
        body = {"prompt": tokens, "n_predict": count, "temperature": 0, "ignore_eos": True, "cache_prompt": True}
        started = time.perf_counter()
        fields = await asyncio.to_thread(self._post, json.dumps(body))
        ms = (time.perf_counter() - started) * 1000
        timings = fields["timings"]
        return Answered(ms, timings["prompt_n"], timings["prompt_ms"], timings["predicted_n"], timings["predicted_ms"])

    async def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        await asyncio.to_thread(self._process.wait)
        self._path.unlink(missing_ok=True)

    def _post(self, body: str) -> Any:
        try:
            self._connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
            reply = self._connection.getresponse()
            fields = json.loads(reply.read())
            self._connection.close()  # The server closes one that is idle for a while.
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise PeerError(f"{self.name} does not answer: {type(error).__name__}") from None
        if reply.status != 200:
            raise PeerError(f"{self.name} refuses a request ({reply.status})")
        return fields

    def _is_ready(self) -> bool:
        try:
            self._connection.request("GET", "/health")
            reply = self._connection.getresponse()
            return reply.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            self._connection.close()


def backend() -> str:
    """Return the instructions of the backend that llama.cpp itself would choose on this processor."""
    known = Path("/proc/cpuinfo")
    flags = set(known.read_text().split()) if known.exists() else set[str]()
    return next((name for name, needed in _BACKENDS.items() if needed <= flags), "x64")
