"""All figures of the GPU path, each next to its floor: `python -m benchmarks.gpu [--full]`, one JSON line a figure.

`--full` uses the released shapes with random weights and needs a GPU; without it tiny shapes run anywhere. Each section
is a process of its own, so a section that fails does not stop the others.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable

import torch

from benchmarks.gpu import gpu_dream, gpu_embedded, gpu_gemma
from benchmarks.gpu.gpu_run import Run

SECTIONS: dict[str, Callable[[Run], None]] = {
    "gemma-steps": gpu_gemma.steps,
    "gemma-generate": gpu_gemma.against_generate,
    "gemma-fill": gpu_gemma.fill,
    "gemma-prefill": gpu_gemma.prefill,
    "gemma-memory": gpu_gemma.memory,
    "dream-fill": gpu_dream.fill,
    "embedded-alone": gpu_embedded.alone,
    "embedded-fifty": gpu_embedded.fifty,
}
QUANTIZED = ("gemma-steps", "gemma-fill", "dream-fill")
"""Sections that `--full` runs a second time in fp8, if the GPU supports it."""
TIMEOUT_S = 240.0
"""For one section, including making the weights."""


def main() -> None:
    parser = argparse.ArgumentParser(description="All figures of the GPU path, each next to its floor.")
    parser.add_argument("--full", action="store_true", help="the released shapes, random weights; needs 70 GB on a GPU")
    parser.add_argument("--only", action="append", choices=[*SECTIONS], help="run this section here, in this process")
    parser.add_argument("--precision", default="auto", help="auto (bf16, on a GPU fp8 too), bf16, fp8, int8 or int4")
    parser.add_argument("--model", default="embedded", help="the embedded model: a name or a folder")
    arguments = parser.parse_args()
    if arguments.only:
        run = Run.of(arguments.full, arguments.precision, arguments.model)
        for name in arguments.only:
            SECTIONS[name](run)
        return
    plan = [(name, arguments.precision) for name in SECTIONS]
    if arguments.precision == "auto" and arguments.full and torch.cuda.is_available():
        plan += [(name, "fp8") for name in QUANTIZED]
    failed = [name for name, precision in plan if not _section(name, precision, arguments.full, arguments.model)]
    if failed:
        raise SystemExit(f"these sections failed: {', '.join(failed)}")


def _section(name: str, precision: str, full: bool, model: str) -> bool:
    """Run a section in a process of its own; return whether it succeeded, and print why if it did not."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--only", name, "--precision", precision, "--model", model]
    try:
        process = subprocess.run(
            [*command, *(["--full"] if full else [])], stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(
            json.dumps({"section": name, "precision": precision, "failed": f"more than {TIMEOUT_S:.0f} s"}), flush=True
        )
        return False
    if process.returncode:
        reason = (process.stderr.strip().splitlines() or ["nothing said"])[-1]
        print(json.dumps({"section": name, "precision": precision, "failed": reason}), flush=True)
    return process.returncode == 0


if __name__ == "__main__":
    main()
