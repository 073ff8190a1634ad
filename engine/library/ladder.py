"""The ladder: which coder this machine can carry above the embedded model. Does not import torch.

A rung is a model of the catalog. The time of a suggestion comes from passes of the embedded model that were timed on
this machine: a pass reads all its weights once, so another model's pass takes longer by the bytes that it reads.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from engine.errors import MidspanError
from engine.folders import config_folder
from engine.json_file import read_json, write_config
from engine.library.catalog import CatalogModel, catalog, milliseconds_of, milliseconds_of_passes
from engine.library.device_memory import UNKNOWN, DeviceMemory, gigabytes, machine_memory
from engine.library.precision_names import Precision
from engine.library.resolve import other_models
from engine.library.store import EMBEDDED, chosen_model
from engine.protocol.editor_messages import ModelOffer

CODER = "coder"
"""The word that names the largest rung which fits."""
_ON_PROCESSOR = ("qwen-coder-0.5b-q4", "qwen-coder-1.5b-q4")
_ON_GPU = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "qwen2.5-coder-7b")
_GPU_PRECISION: Precision = "bf16"
_PROCESSOR_PRECISION: Precision = "int4"
"""What the kernel makes of a GGUF with four bits."""
_SIZE = re.compile(r"coder-([\d.]+b)")
_SLOW = "slow-models.json"


@attrs.frozen
class PassTime:
    """What was measured here: the milliseconds of a pass of one row, and the bytes that it reads."""

    milliseconds: float
    bytes_read: int

    @property
    def bytes_per_s(self) -> float:
        return 1000 * self.bytes_read / self.milliseconds

    def of_suggestion(self, model: CatalogModel) -> float | None:
        """Return about how long a suggestion of a model takes: one pass reads the key, the others write a line.

        None for a model of which nobody knows what a pass reads.
        """
        if model.pass_bytes is None:
            return None
        return milliseconds_of_passes(model.pass_bytes, self.bytes_per_s)


@attrs.frozen
class Rung:
    """A coder on a device: whether its memory fits now, the time of a suggestion, and whether that was measured.

    `milliseconds` is None where nothing tells the time.
    """

    model: CatalogModel
    fits: bool
    milliseconds: float | None
    is_measured: bool

    def is_in_time(self, budget_ms: float) -> bool:
        return self.milliseconds is not None and self.milliseconds <= budget_ms

    @property
    def time(self) -> str:
        """The time of a suggestion as text."""
        if self.milliseconds is None:
            return "in an unknown time"
        return f"in about {_readable(self.milliseconds)} ({'measured here' if self.is_measured else 'an estimate'})"


def rungs_here(memories: Iterable[DeviceMemory], measured: PassTime | None) -> list[Rung]:
    """Return the rungs of this machine, the smallest first: those of its first GPU, or of the processor without one."""
    known = list(memories)
    gpu = next((memory for memory in known if memory.is_gpu), None)
    if gpu is not None:
        return [_on_gpu(gpu, catalog()[name]) for name in _ON_GPU]
    memory = next(iter(known), DeviceMemory("memory", UNKNOWN, UNKNOWN, (_PROCESSOR_PRECISION,)))
    return [_on_processor(memory, catalog()[name], measured) for name in _ON_PROCESSOR]


def largest(rungs: Iterable[Rung], budget_ms: float) -> Rung | None:
    """Return the largest rung that fits and answers in time; None without one."""
    return next((rung for rung in reversed(list(rungs)) if rung.fits and rung.is_in_time(budget_ms)), None)


def why_none(rungs: Iterable[Rung], budget_ms: float) -> str:
    """Return a line that says why the smallest rung does not do, and how to take it all the same."""
    smallest = next(iter(rungs))
    name = smallest.model.name
    reason = (
        f"would suggest {smallest.time}, and in time is {budget_ms:.0f} ms (midspan.budgetMs)"
        if smallest.fits
        else "does not fit the memory that is free now"
    )
    return f"no coder does here: {name} {reason}; take it all the same with: midspan models pull {name}"


def is_above(rung: Rung, in_use: str) -> bool:
    """Tell whether a rung is above the model in use. Nothing is above one that is no rung: the user chose it."""
    if in_use == EMBEDDED:
        return True
    name = rung_of(in_use)
    return name is not None and catalog()[name].parameters < rung.model.parameters


def rung_of(in_use: str) -> str | None:
    """Return the name of the rung that a chosen model is, also as another program's file; None if it is none."""
    if in_use in _ON_PROCESSOR + _ON_GPU:
        return in_use
    return next((name for name in _ON_PROCESSOR if in_use in map(str, files_elsewhere(catalog()[name]))), None)


def fits_now(name: str) -> bool:
    """Tell whether the memory that is free now is enough for a rung on the processor. See doctor for a GPU's."""
    memory = machine_memory()
    return name not in _ON_PROCESSOR or memory is None or _on_processor(memory, catalog()[name], None).fits


def files_elsewhere(model: CatalogModel) -> list[Path]:
    """Return the files of a rung that Ollama and LM Studio have, by the names that they and its makers give it."""
    size = _SIZE.search(model.name)
    if size is None or not model.file:
        return []
    name = re.compile(rf"qwen2\.5-coder[-:]{re.escape(size[1])}(-instruct)?(-q4_(0|k_m))?(-gguf)?", re.IGNORECASE)
    return [other.path for other in other_models() if name.fullmatch(other.name)]


def is_any_above(rungs: Iterable[Rung]) -> bool:
    """Tell whether one of the rungs fits, is above the model in use, and was not too slow here: only then time one."""
    return any(rung.fits for rung in _above_here(rungs))


def offer_above(
    rungs: Iterable[Rung], budget_ms: float, elsewhere: Callable[[CatalogModel], Path | None] = lambda _: None
) -> ModelOffer | None:
    """Return what to offer to a user of the default model; None where the machine cannot carry more, or it is in use.

    `elsewhere` returns the file of another program that is a model already. What was too slow here is not offered
    again.
    """
    rung = largest(_above_here(rungs), budget_ms)
    if rung is None:
        return None
    model, milliseconds, path = rung.model, rung.milliseconds or 0.0, elsewhere(rung.model)
    get = f"{gigabytes(model.bytes_to_pull)} to download" if path is None else f"used from {path}"
    text = f"{model.name} would suggest {rung.time}; {get}, licence {model.licence}"
    return ModelOffer(text, model.name, model.bytes_to_pull, model.licence, round(milliseconds), str(path or ""))


def _above_here(rungs: Iterable[Rung]) -> list[Rung]:
    """Return the rungs above the model in use that were not too slow here."""
    in_use, slow = chosen_model().model, slow_here()
    return [rung for rung in rungs if rung.model.name not in slow and is_above(rung, in_use)]


def slow_here() -> set[str]:
    """Return the rungs that were in use on this machine, and too slow. Never raises."""
    try:
        return set(map(str, read_json(config_folder() / _SLOW)["models"]))
    except (OSError, ValueError, TypeError, KeyError, MidspanError):
        return set()


def note_slow(in_use: str) -> None:
    """Note that a chosen model was too slow on this machine. Raises ModelError if it cannot be kept."""
    if (name := rung_of(in_use)) is not None:
        write_config(config_folder() / _SLOW, {"models": sorted({*slow_here(), name})})


def _on_processor(memory: DeviceMemory, model: CatalogModel, measured: PassTime | None) -> Rung:
    milliseconds = None if measured is None else measured.of_suggestion(model)
    needed = memory.bytes_needed(_PROCESSOR_PRECISION, model.parameters)
    return Rung(model, needed <= memory.free, milliseconds, is_measured=True)


def _on_gpu(memory: DeviceMemory, model: CatalogModel) -> Rung:
    fits = memory.verdict(_GPU_PRECISION, model.parameters) == "fits"
    return Rung(model, fits, milliseconds_of(memory, model, _GPU_PRECISION), is_measured=False)


def _readable(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{max(10, round(milliseconds, -1)):.0f} ms"
