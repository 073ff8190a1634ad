"""How long a model's answer is likely to take on a device, from its size and the device's speed. Does not import torch.

A rough estimate, for choosing a model: nothing is loaded. It has not been compared with a GPU yet.
"""

from collections.abc import Iterable

import attrs

from engine.library.catalog import CatalogModel
from engine.library.device_memory import DeviceMemory, bytes_of_weights, with_measured_speed
from engine.library.precision_names import Precision

DEFAULT_BUDGET_MS = 500
"""The default of the setting midspan.budgetMs."""
PASSES = 8
"""Passes of an answer after the text around the hole is read: DiffusionGemma's default, and about what a line takes the
other models."""
SHARE_OF_SPEED = 0.5
"""A pass reaches about half of the speed at which a device copies or multiplies large matrices."""
_CAUSAL = ("diffusion-gemma", "qwen-fim", "gguf")
"""Families whose text above the hole is cached from key to key."""
_IN_KERNEL = ("int8", "int4")
"""What the kernel runs GGUF files in."""
_KEY_TOKENS, _READ_TOKENS = 128, {"gpu": 2048, "memory": 512}
"""What a key press has read again: the suffix and some tokens, or both sides in a masked model."""
_CANVAS_ROWS = 32
_NEARLY = 1.25


@attrs.frozen
class Answer:
    """The best precision in which a model fits a device now, and about how long its answer takes, in milliseconds;
    None if the device's speed is not known."""

    precision: Precision
    milliseconds: float | None

    @property
    def in_time(self) -> bool:
        return self.milliseconds is not None and self.milliseconds <= DEFAULT_BUDGET_MS

    def __str__(self) -> str:
        if self.milliseconds is None:
            return self.precision
        return f"{self.precision}, {_rounded(self.milliseconds)}"


def answering_devices(memories: list[DeviceMemory]) -> list[DeviceMemory]:
    """Return the devices that a larger model would run on: the GPUs, or without any the processor, whose speed is then
    measured."""
    return [memory for memory in memories if memory.is_gpu] or [with_measured_speed(memory) for memory in memories]


def answer_on(memory: DeviceMemory, model: CatalogModel) -> Answer | None:
    """Return how a model answers on a device: in the first precision that fits and answers in time, else in the first
    that is nearly as fast as the fastest; None if none fits."""
    fitting = [
        Answer(precision, milliseconds_of(memory, model, precision))
        for precision in memory.precisions
        if memory.verdict(precision, model.parameters) == "fits" and not (model.file and precision not in _IN_KERNEL)
    ]
    fastest = min((answer.milliseconds or 0.0 for answer in fitting), default=0.0)
    fast = (answer for answer in fitting if (answer.milliseconds or 0.0) <= _NEARLY * fastest)
    return next((answer for answer in fitting if answer.in_time), next(fast, None))


def answers_on(device: DeviceMemory, models: Iterable[CatalogModel]) -> str:
    """Return as text which of these models fit a device, in time or not, with their answers."""
    answers = [(model.name, answer_on(device, model)) for model in models if model.hub]
    in_time = [f"{name} ({answer})" for name, answer in answers if answer is not None and answer.in_time]
    late = [f"{name} ({answer})" for name, answer in answers if answer is not None and not answer.in_time]
    large = [name for name, answer in answers if answer is None]
    groups = (("in time", in_time), ("slower", late), ("too large", large))
    place = "the processor" if not device.is_gpu else device.name
    return f"on {place} " + "; ".join(f"{what}: {', '.join(names)}" for what, names in groups if names)


def milliseconds_of(memory: DeviceMemory, model: CatalogModel, precision: Precision) -> float | None:
    """Return about how long an answer takes after a key press; None if the device's speed is not known.

    A pass reads all weights once, and multiplies each row with the weights that are active for it.
    """
    if not memory.bytes_per_s or not memory.operations_per_s:
        return None
    active = model.active_parameters or model.parameters
    weights = bytes_of_weights(model.parameters, precision, 0, memory.plain_bytes)
    read = _KEY_TOKENS if model.family in _CAUSAL else _READ_TOKENS["gpu" if memory.is_gpu else "memory"]

    def seconds(rows: int) -> float:
        return max(weights / memory.bytes_per_s, 2 * rows * active / memory.operations_per_s) / SHARE_OF_SPEED

    return 1000 * (seconds(read) + PASSES * seconds(_CANVAS_ROWS))


def _rounded(milliseconds: float) -> str:
    if milliseconds >= 60_000:
        return "over a minute"
    return f"~{milliseconds / 1000:.0f} s" if milliseconds >= 1000 else f"~{max(10, round(milliseconds, -1)):.0f} ms"
