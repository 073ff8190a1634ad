"""The models that Midspan knows by name, from catalog.toml, and how long their answers take. Does not import torch.

The time of an answer is estimated roughly from a model's size and the device's speed, for choosing a model: nothing is
loaded. It has not been compared with a GPU yet.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import attrs

from engine.errors import ModelError
from engine.library.device_memory import DeviceMemory, bytes_of_weights, with_measured_speed
from engine.library.precision_names import Precision
from engine.library.store import NAME


@attrs.frozen
class CatalogFamily:
    """What the catalog's estimates ask of a family of models.

    causal: the text above the hole is cached from key to key. in_kernel: our kernel runs it where there is no GPU.
    """

    causal: bool = False
    in_kernel: bool = False


FAMILIES = {
    "embedded": CatalogFamily(causal=True, in_kernel=True),
    "diffusion-gemma": CatalogFamily(causal=True),
    "dream": CatalogFamily(in_kernel=True),
    "dreamon": CatalogFamily(in_kernel=True),
    "diffucoder": CatalogFamily(in_kernel=True),
    "open-dcoder": CatalogFamily(in_kernel=True),
    "dllm-qwen": CatalogFamily(in_kernel=True),
    "llada": CatalogFamily(),
    "coda": CatalogFamily(in_kernel=True),
    "qwen-fim": CatalogFamily(causal=True, in_kernel=True),
    "gguf": CatalogFamily(causal=True, in_kernel=True),
}
Architecture = Literal["Network", "DiffusionGemma", "Qwen2", "Qwen3", "Llama"]
BF16_BYTES = 2
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def _one_of(*choices: str) -> Any:
    def check(instance: object, attribute: "attrs.Attribute[str]", value: str) -> None:
        if value not in choices:
            raise ValueError(f"{attribute.name} is {value!r}, and must be one of {', '.join(choices)}")

    return check


_TEXT = attrs.validators.and_(attrs.validators.instance_of(str), attrs.validators.min_len(1))
_FLAG = attrs.validators.instance_of(bool)
_COUNT = attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.gt(0))
_OPTIONAL_COUNT = attrs.validators.optional(_COUNT)


@attrs.frozen(kw_only=True)
class CatalogModel:
    """The facts about a model. The header of catalog.toml explains the fields and where they come from.

    `hub` is the model's id at the hub, or "" for the embedded model. `file` is the GGUF there that is the model, or ""
    for one in safetensors. Raises ValueError or TypeError for a wrong field.
    """

    name: str = attrs.field(validator=attrs.validators.matches_re(NAME))
    family: str = attrs.field(validator=_one_of(*FAMILIES))
    hub: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    file: str = attrs.field(default="", validator=attrs.validators.matches_re(r"([\w.-]+\.gguf)?"))
    revision: str = attrs.field(default="main", validator=_TEXT)
    licence: str = attrs.field(validator=_TEXT)
    free: bool = attrs.field(validator=_FLAG)
    parameters: int = attrs.field(validator=_COUNT)
    active_parameters: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    size_bytes: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    pass_bytes: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    architecture: Architecture = attrs.field(validator=_one_of(*get_args(Architecture)))
    mask_id: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    other_ids: dict[str, int] = attrs.field(
        factory=dict, validator=attrs.validators.deep_mapping(_TEXT, attrs.validators.instance_of(int))
    )
    shifted: bool = attrs.field(validator=_FLAG)
    context_tokens: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    attention: str = attrs.field(validator=_TEXT)
    notes: str = attrs.field(validator=_TEXT)
    verified: str = attrs.field(validator=_TEXT)
    inferred: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])

    def __attrs_post_init__(self) -> None:
        if (self.family == "embedded") == bool(self.hub) or (self.hub and not _HUB_ID.fullmatch(self.hub)):
            raise ValueError(f"hub is {self.hub!r}, and must be an owner/name, or absent for the embedded model")
        fields = {field.name for field in attrs.fields(CatalogModel)}
        if unknown := set(self.inferred) - fields:
            raise ValueError(f"inferred names {', '.join(sorted(unknown))}, and no such field exists")

    @property
    def bytes_to_pull(self) -> int:
        """The bytes of the weights on disk: the known size, or else that of the parameters in bf16."""
        return self.size_bytes or self.parameters * BF16_BYTES

    @property
    def licence_page(self) -> str:
        """The page or file with the licence."""
        return f"https://huggingface.co/{self.hub}" if self.hub else "LICENSE"


@cache
def catalog() -> Mapping[str, CatalogModel]:
    """Return the models by name, in the order of the file."""
    return read_catalog(Path(__file__).with_name("catalog.toml"))


def read_catalog(path: Path) -> Mapping[str, CatalogModel]:
    """Read a catalog. Raises ModelError that names the model and the wrong field."""
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read the catalog {path}: {error}") from None
    models = {}
    for name, table in tables.items():
        try:
            models[name] = CatalogModel(name=name, **table)
        except (TypeError, ValueError) as error:
            # Only the first argument says what is wrong; the others are the field and its validator.
            raise ModelError(f"the model {name} in {path.name} is wrong: {error.args[0]}") from None
    return models


DEFAULT_BUDGET_MS = 500
"""The default of the setting midspan.budgetMs."""
_PASSES = 8
"""Passes of an answer after the text around the hole is read: DiffusionGemma's default, and about what a line takes the
other models."""
SHARE_OF_SPEED = 0.5
"""A pass reaches about half of the speed at which a device copies or multiplies large matrices."""
_KERNEL_PRECISIONS: tuple[Precision, ...] = ("int8", "int4")
_KERNEL_SPEED = 4.0
"""How many times as fast as NumPy in fp32 the kernel multiplies: 600 tokens of a 0.5B take 0.5 s on two cores."""
_KEY_TOKENS, _READ_TOKENS = 128, {"gpu": 2048, "memory": 512}
"""What a key press has read again: the suffix and some tokens, or both sides in a masked model."""
_CANVAS_ROWS, _DRAFT_ROWS = 32, 8
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

    @property
    def time(self) -> str:
        """About how long it takes; "?" if that is not known."""
        return "?" if self.milliseconds is None else _rounded(self.milliseconds)


def answering_devices(memories: list[DeviceMemory]) -> list[DeviceMemory]:
    """Return the devices that a larger model would run on: the GPUs, or without any the processor, whose speed is then
    measured."""
    return [memory for memory in memories if memory.is_gpu] or [with_measured_speed(memory) for memory in memories]


def answer_on(memory: DeviceMemory, model: CatalogModel) -> Answer | None:
    """Return how a model answers on a device: in the first precision that fits and answers in time, else in the first
    that is nearly as fast as the fastest; None if none fits."""
    fitting = [
        Answer(precision, milliseconds_of(memory, model, precision))
        for precision in (_KERNEL_PRECISIONS if _in_kernel(memory, model) or model.file else memory.precisions)
        if memory.verdict(precision, model.parameters) == "fits"
    ]
    fastest = min((answer.milliseconds or 0.0 for answer in fitting), default=0.0)
    fast = (answer for answer in fitting if (answer.milliseconds or 0.0) <= _NEARLY * fastest)
    return next((answer for answer in fitting if answer.in_time), next(fast, None))


def answers_on(device: DeviceMemory, models: Iterable[CatalogModel]) -> str:
    """Return in one line how many of these models answer in time on a device, are slower, or do not fit."""
    answers = [(model, answer_on(device, model)) for model in models if model.hub]
    in_time = [(model, answer) for model, answer in answers if answer is not None and answer.in_time]
    late = [(model, answer) for model, answer in answers if answer is not None and not answer.in_time]
    parts = [f"{len(in_time)} of {len(answers)} answer in time"]
    if in_time:
        model, answer = max(in_time, key=lambda each: each[0].parameters)
        parts[0] += f", the largest {model.name} ({answer.time})"
    if late:
        model, answer = min(late, key=lambda each: each[1].milliseconds or math.inf)
        parts.append(f"{len(late)} are slower, the fastest {model.name} ({answer.time})")
    if large := len(answers) - len(in_time) - len(late):
        parts.append(f"{large} are too large")
    return f"on {place_of(device)} {'; '.join(parts)}"


def place_of(device: DeviceMemory) -> str:
    """Return what a device is called in a line for people."""
    return device.name if device.is_gpu else "the processor"


def _in_kernel(memory: DeviceMemory, model: CatalogModel) -> bool:
    return FAMILIES[model.family].in_kernel and not memory.is_gpu


def milliseconds_of(memory: DeviceMemory, model: CatalogModel, precision: Precision) -> float | None:
    """Return about how long an answer takes after a key press; None if the device's speed is not known.

    A pass reads all weights once, and multiplies each row with the weights that are active for it, but where the kernel
    was timed.
    """
    if not memory.bytes_per_s or not memory.operations_per_s:
        return None
    active = model.active_parameters or model.parameters
    weights = bytes_of_weights(model.parameters, precision, 0, memory.plain_bytes)
    in_kernel, causal = _in_kernel(memory, model), FAMILIES[model.family].causal
    if in_kernel and causal and memory.kernel_bytes_per_s:
        return milliseconds_of_passes(model.pass_bytes or weights, memory.kernel_bytes_per_s)
    operations_per_s = memory.operations_per_s * (_KERNEL_SPEED if in_kernel else 1)
    rows_of_pass = _DRAFT_ROWS if in_kernel and causal else _CANVAS_ROWS
    read = _KEY_TOKENS if causal else _READ_TOKENS["gpu" if memory.is_gpu else "memory"]

    def seconds(rows: int) -> float:
        return max(weights / memory.bytes_per_s, 2 * rows * active / operations_per_s) / SHARE_OF_SPEED

    return 1000 * (seconds(read) + _PASSES * seconds(rows_of_pass))


def milliseconds_of_passes(pass_bytes: float, bytes_per_s: float) -> float:
    """Return about how long an answer takes where a pass of few rows takes what reading its weights does.

    One pass reads the key, the others write a line.
    """
    return 1000 * (1 + _PASSES) * pass_bytes / bytes_per_s


def _rounded(milliseconds: float) -> str:
    if milliseconds >= 60_000:
        return "> 60 s"
    return f"~{milliseconds / 1000:.0f} s" if milliseconds >= 1000 else f"~{max(10, round(milliseconds, -1)):.0f} ms"
