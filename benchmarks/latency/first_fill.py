"""How long after an engine's start does the first fill come, and what does the engine hold then? `first_fill.py FILE`.

The first start packs the weights of a GGUF, the later ones map what that one kept. Each row: seconds until the engine
is ready, until its first fill came, processor seconds until then, and MB: resident, its share of what it has in common
with others, of that its own pages and the file's.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psutil

from engine.client.launcher import EngineOptions, connect_or_start
from engine.protocol.messages import Fill

_HOLE = Fill(
    id=1, prefix="def area(width, height):\n    return ", suffix="\n\n\nprint(area(3, 4))\n", budget_ms=60_000.0
)
_KEPT_S = 90.0


async def first_fill(options: EngineOptions) -> tuple[int, float, float, str]:
    """Return the engine's process, seconds until it was ready and until its first fill came, and the text of that."""
    begun = time.perf_counter()
    client = await connect_or_start(options, "first fill")
    ready = time.perf_counter() - begun
    text = (await client.fill(_HOLE)).candidates[0].text
    return client.welcome.pid, ready, time.perf_counter() - begun, text


def main() -> None:
    path, starts = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="midspan-first-") as folder:
        os.environ |= {"MIDSPAN_DATA_DIR": f"{folder}/data", "MIDSPAN_RUNTIME_DIR": f"{folder}/runtime"}
        kept = Path(folder, "data", "packed")
        print("start     ready  first    cpu RSS PSS anonymous file")
        for number in range(starts):
            name = "maps" if list(kept.glob("*.packed")) else "packs"
            pid, ready, first, text = asyncio.run(first_fill(EngineOptions(model=str(path))))
            process = psutil.Process(pid)
            cpu, lines = process.cpu_times(), Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
            sizes = {line.split(":")[0]: int(line.split()[1]) // 1000 for line in lines}
            memory = [sizes[field] for field in ("Rss", "Pss", "Pss_Anon", "Pss_File")]
            print(f"{name:8} {ready:6.2f} {first:6.2f} {cpu.user + cpu.system:6.2f}", *memory, repr(text), flush=True)
            deadline = time.perf_counter() + _KEPT_S
            while number == 0 and starts > 1 and not list(kept.glob("*.packed")) and time.perf_counter() < deadline:
                time.sleep(0.2)
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
