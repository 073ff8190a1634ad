"""What HTTP adds: the same fills over the engine's socket and through `midspan serve`, in turns, on one engine.

Run it as `python benchmarks/latency/http_latency.py`; `--holes N` bounds it. Both clients keep one connection open.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from typing import Annotated, Any

import psutil
import typer

from benchmarks.common.sources import Span, line_holes
from benchmarks.common.statistic import Percentiles
from engine.client.connection import EngineClient
from engine.client.launcher import EngineOptions, connect_or_start
from engine.errors import MidspanError
from engine.protocol.messages import Fill


def main(
    holes: Annotated[int, typer.Option(help="Lines to fill, each over both ways.")] = 60,
    model: Annotated[str, typer.Option(help='"embedded" or a folder with a model.')] = "embedded",
    replicas: Annotated[int, typer.Option(help="Replicas that Ray keeps, each with all cores; 0 is one engine.")] = 0,
) -> None:
    """Measure, and print one line of JSON: ms over each way, what HTTP adds, the server's CPU time a fill."""
    with tempfile.TemporaryDirectory(prefix="midspan-bench-") as folder:
        os.environ["MIDSPAN_RUNTIME_DIR"] = folder
        try:
            asyncio.run(_measure(model, holes, replicas))
        except MidspanError as error:
            typer.echo(f"http_latency: {error}", err=True)
            raise typer.Exit(1) from None


async def _measure(model: str, count: int, replicas: int) -> None:
    client = await connect_or_start(EngineOptions(model=model), "benchmark")
    command = [sys.executable, "-P", "-m", "engine.cli", "serve", "--port", "0", "--model", model, "--rate", "0"]
    if replicas:
        command += ["--replicas", str(replicas), "--threads", str(os.cpu_count() or 1)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert process.stderr is not None
    ready = next((found for line in process.stderr if (found := re.search(r"http://[\d.]+:(\d+) answers", line))), None)
    assert ready is not None, "midspan serve did not start"
    connection = http.client.HTTPConnection("127.0.0.1", int(ready[1]))
    server = psutil.Process(process.pid)
    try:
        socket_ms: list[float] = []
        http_ms: list[float] = []
        cpu = server.cpu_times()
        for number, hole in enumerate(line_holes(count)):
            # Each way goes first in turn, and only warm fills count: the one that goes first would read the context.
            await _over_socket(client, hole)
            _over_http(connection, hole)
            ways = [("socket", socket_ms), ("http", http_ms)]
            for way, times in ways if number % 2 else ways[::-1]:
                begun = time.perf_counter()
                if way == "socket":
                    await _over_socket(client, hole)
                else:
                    _over_http(connection, hole)
                times.append((time.perf_counter() - begun) * 1000)
        added = [there - here for here, there in zip(socket_ms, http_ms, strict=True)]
        figures = {
            "holes": len(added),
            "socket_ms": _figures(socket_ms),
            "http_ms": _figures(http_ms),
            "added_ms": _figures(added),
            "server_cpu_ms": round(1000 * (_seconds(server.cpu_times()) - _seconds(cpu)) / max(1, len(added)), 2),
        }
        typer.echo(json.dumps(figures))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        await client.shutdown()


async def _over_socket(client: EngineClient, hole: Span) -> None:
    await client.fill(Fill(1, hole.text[: hole.offset], hole.text[hole.offset :], max_tokens=32, budget_ms=10_000))


def _over_http(connection: http.client.HTTPConnection, hole: Span) -> None:
    body = {"prompt": hole.text[: hole.offset], "suffix": hole.text[hole.offset :], "max_tokens": 32, "stop": ["\n"]}
    connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()


def _seconds(times: Any) -> float:
    return float(times.user + times.system)


def _figures(values: list[float]) -> dict[str, float]:
    figures = Percentiles.of(values)
    return {"p50": round(figures.p50, 2), "p95": round(figures.p95, 2)}


if __name__ == "__main__":
    typer.run(main)
