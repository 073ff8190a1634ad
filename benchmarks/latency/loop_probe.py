"""midspan-lsp with a probe: `python loop_probe.py FILE` appends the milliseconds of each step of its loop to FILE.

Processor time of the thread counts, so that what else the machine does counts little. Steps below 1 ms are left out.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import asyncio
import time
from typing import TextIO

_LEAST_NS = 1_000_000


def probe(out: TextIO) -> None:
    """Measure each step of the event loops that are begun after this."""
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time_ns()
        run(handle)
        took = time.thread_time_ns() - began
        if took > _LEAST_NS:
            out.write(f"{took / 1e6:.3f}\n")
            out.flush()

    asyncio.Handle._run = measured  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    from lsp_server.__main__ import main

    with Path(sys.argv.pop(1)).open("a") as steps:
        probe(steps)
        main()
