"""The models that Midspan knows by name, from catalog.toml. Does not import torch."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import attrs

from engine.errors import ModelError
from engine.library.store import NAME

FamilyName = Literal[
    "embedded",
    "diffusion-gemma",
    "dream",
    "dreamon",
    "diffucoder",
    "open-dcoder",
    "dllm-qwen",
    "llada",
    "qwen-fim",
    "gguf",
]
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
    family: FamilyName = attrs.field(validator=_one_of(*get_args(FamilyName)))
    hub: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    file: str = attrs.field(default="", validator=attrs.validators.matches_re(r"([\w.-]+\.gguf)?"))
    revision: str = attrs.field(default="main", validator=_TEXT)
    licence: str = attrs.field(validator=_TEXT)
    free: bool = attrs.field(validator=_FLAG)
    parameters: int = attrs.field(validator=_COUNT)
    active_parameters: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    size_bytes: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    architecture: Architecture = attrs.field(validator=_one_of(*get_args(Architecture)))
    mask_id: int | None = attrs.field(default=None, validator=_OPTIONAL_COUNT)
    other_ids: dict[str, int] = attrs.field(
        factory=dict,
        validator=attrs.validators.deep_mapping(_TEXT, attrs.validators.instance_of(int)),
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
