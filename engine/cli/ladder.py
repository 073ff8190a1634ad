"""The ladder on this machine: times passes of the embedded model, and says which coder it could carry."""

import functools
import json
import os
import time
from pathlib import Path
from typing import Annotated

import attrs
import cattrs
import typer

from engine.cli.console import AsJson, out
from engine.errors import ModelError
from engine.json_file import read_json
from engine.library.catalog import DEFAULT_BUDGET_MS, CatalogModel, answering_devices
from engine.library.device_memory import DeviceMemory, device_memories
from engine.library.ladder import (
    PassTime,
    Rung,
    files_elsewhere,
    is_any_above,
    largest,
    offer_above,
    rungs_here,
    why_none,
)
from engine.library.resolve import EMBEDDED_FOLDER
from engine.protocol.editor_messages import ModelOffer

_TIMED_S = 0.3
"""How long passes are timed. The fastest counts: other programs only make one slower."""
_FEWEST = 5
_ROWS = 32
"""A context of so many tokens is read before."""
BudgetMs = Annotated[
    float, typer.Option("--budget-ms", min=1, help="The time in which a suggestion must come: midspan.budgetMs.")
]
BUDGET_MS = float(DEFAULT_BUDGET_MS)


@functools.cache
def measured_pass() -> PassTime | None:
    """Time passes of the embedded model with all cores; None if it cannot be loaded."""
    from engine.fill.stream import StreamPass
    from engine.models.embedded.model import Card
    from engine.models.embedded.runner import HostRunner, host_pass
    from engine.models.embedded.weights import Weights

    weights_file = EMBEDDED_FOLDER / "model.safetensors"
    try:
        card = cattrs.Converter(detailed_validation=False).structure(read_json(EMBEDDED_FOLDER / "config.json"), Card)
        weights = Weights.load(weights_file)
        runner = HostRunner(host_pass(weights, card.shape, os.cpu_count() or 1), weights, card.shape, [], [])
    except Exception:  # whatever is wrong with the installation, doctor's check of it says so
        return None
    context = runner.new_context()
    runner.logits([StreamPass(context, list(range(_ROWS)), [], [_ROWS - 1])])
    context.tokens += range(_ROWS)
    times: list[float] = []
    end = time.perf_counter() + _TIMED_S
    while len(times) < _FEWEST or time.perf_counter() < end:
        begun = time.perf_counter()
        runner.logits([StreamPass(context, [_ROWS], [], [0])])
        times.append(time.perf_counter() - begun)
    return PassTime(1000 * min(times), weights_file.stat().st_size)


def measured_devices(memories: list[DeviceMemory]) -> list[DeviceMemory]:
    """Return the devices that a larger model would run on, a processor with the speed of our kernel. Takes a second."""
    measured = _pass_on(memories)
    speed = 0.0 if measured is None else measured.bytes_per_s
    return [attrs.evolve(device, kernel_bytes_per_s=speed) for device in answering_devices(memories)]


def measured_rungs(memories: list[DeviceMemory]) -> list[Rung]:
    """Return the rungs of a machine with these memories, this one, with their times. Takes about a second."""
    return rungs_here(memories, _pass_on(memories))


def _pass_on(memories: list[DeviceMemory]) -> PassTime | None:
    """Return the time of a pass where a larger model would run on the processor; None where a GPU would have it."""
    return None if any(memory.is_gpu for memory in memories) else measured_pass()


def best_rung(budget_ms: float) -> Rung:
    """Return the largest rung that this machine carries. Raises ModelError in one line if it carries none."""
    rungs = measured_rungs(device_memories())
    rung = largest(rungs, budget_ms)
    if rung is None:
        raise ModelError(why_none(rungs, budget_ms))
    return rung


def runnable_elsewhere(model: CatalogModel) -> Path | None:
    """Return the file of a model in another program's folder, if it can be run here."""
    from engine.cli.model_sheet import gguf_sheet

    for path in files_elsewhere(model):
        try:
            gguf_sheet(path)
        except ModelError:
            continue
        return path
    return None


def measured_offer(budget_ms: float) -> ModelOffer | None:
    """Return what this machine could carry above the model in use; None where there is nothing to say."""
    memories = device_memories()
    if not is_any_above(rungs_here(memories, None)):
        return None
    return offer_above(measured_rungs(memories), budget_ms, runnable_elsewhere)


def offer_line(offer: ModelOffer) -> str:
    """Return an offer as a line for people, with the command."""
    return f"{offer.text}; get it with: midspan models pull coder"


def offer(budget_ms: BudgetMs = BUDGET_MS, as_json: AsJson = False) -> None:
    """Say which model above the one in use this machine could carry; nothing where it cannot."""
    found = measured_offer(budget_ms)
    if as_json:
        typer.echo(json.dumps(None if found is None else attrs.asdict(found)))
    elif found is not None:
        out.print(offer_line(found), soft_wrap=True)
