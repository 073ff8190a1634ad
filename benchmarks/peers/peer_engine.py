"""Midspan's engine as a peer, with the kernel or with something else in its place.

As a program it is an engine process like `python -m engine`, whose first argument names what runs the passes.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import os
import subprocess
import time

import attrs
import psutil

import engine
from benchmarks.peers.peer import Question, Took
from benchmarks.peers.peer_onnx import OnnxPass, OnnxRunner, has_onnx
from engine import __main__ as engine_main
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_running
from engine.errors import EngineUnavailable
from engine.library.precision_names import PrecisionSetting
from engine.library.resolve import folder_of
from engine.models.embedded import load as loading
from engine.models.embedded.numpy_pass import NumpyPass
from engine.protocol.messages import MemoryName, RuleName

_START_S = 120.0
KERNEL, NUMPY, ONNX = "kernel", "numpy", "onnx"


@attrs.frozen
class Way:
    """A way to run our model: what runs the passes, in which precision, and how a hole is filled."""

    name: str
    passes: str = KERNEL
    precision: PrecisionSetting = "auto"
    rule: RuleName = "left-to-right"
    memory: MemoryName = "off"


WAYS = (
    Way("Midspan, as shipped", rule="default", memory="workspace"),
    Way("the same weights left to right"),
    Way("NumPy", NUMPY),
    Way("torch fp32", precision="fp32"),
    Way("torch bf16", precision="bf16"),
    Way("ONNX Runtime int8", ONNX),
)


class EnginePeer:
    """Implements peer.Peer."""

    def __init__(self, way: Way, model: str, client: EngineClient) -> None:
        self.name = way.name
        self._way, self._model, self._client = way, model, client

    @classmethod
    async def start(cls, way: Way, model: str, folder: Path, threads: int) -> "EnginePeer":
        """Start an engine process with a runtime folder of its own in `folder`. Raises EngineUnavailable."""
        if way.passes == ONNX and not has_onnx():
            raise EngineUnavailable("onnxruntime and onnx are not installed; put them into PYTHONPATH")
        options = EngineOptions(model=model, precision=way.precision)
        runtime = folder / way.name.replace(" ", "-")
        runtime.mkdir(mode=0o700)
        os.environ["MIDSPAN_RUNTIME_DIR"] = str(runtime)
        command = [sys.executable, __file__, way.passes, "--model", model, "--precision", way.precision]
        variables = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": _path()}
        process = start_process([*command, "--threads", str(threads)], variables, runtime / "log")
        deadline = time.monotonic() + _START_S
        while (client := await connect_running(options, "midspan-bench")) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                lines = (runtime / "log").read_text(errors="replace").splitlines()
                raise EngineUnavailable(f"its engine does not start: {lines[-1] if lines else 'no word from it'}")
            await asyncio.sleep(0.05)
        return cls(way, model, client)

    @property
    def pid(self) -> int:
        return self._client.welcome.pid

    @property
    def disk(self) -> int:
        """The bytes of Midspan's own files, whatever runs them."""
        return sum(path.stat().st_size for path in folder_of(self._model).glob("*.safetensors"))

    async def fill(self, question: Question) -> Took:
        # One text, as while somebody types.
        fill = attrs.evolve(question.fill, rule=self._way.rule, choose_from=1, memory=self._way.memory)
        started = time.perf_counter()
        filled = await self._client.fill(fill)
        ms = (time.perf_counter() - started) * 1000
        return Took(ms, len(filled.candidates[0].tokens), filled.context_tokens - filled.cached_tokens)

    async def close(self) -> None:
        await self._client.shutdown()
        await self._client.close()


def start_process(command: list[str], variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a program beside its log, to which it writes."""
    with log.open("wb") as output:
        return subprocess.Popen(command, env=variables, stdout=output, stderr=output, cwd=log.parent)


def resident_megabytes(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss / 1e6)


def _path() -> str:
    """Return PYTHONPATH for a process that needs this tree's packages, and what this process found."""
    tree = str(Path(engine.__file__).parents[1])
    return os.pathsep.join([tree, *filter(None, [os.environ.get("PYTHONPATH")])])


def _main() -> None:
    passes = sys.argv.pop(1)
    # What is put in their places takes threads from the environment, and ONNX Runtime's graph has the weights.
    replaced: dict[str, object] = {}
    if passes == NUMPY:
        replaced = {"host_pass": lambda weights, shape, threads: NumpyPass(weights, shape)}
    elif passes == ONNX:
        replaced = {
            "host_pass": lambda weights, shape, threads: OnnxPass(weights, shape),
            "HostRunner": lambda graph, weights, *rest: OnnxRunner(graph, *rest),
        }
    vars(loading).update(replaced)
    engine_main.main()


if __name__ == "__main__":
    _main()
