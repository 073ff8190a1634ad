"""Which family a checkpoint belongs to. Only this module decides it.

In this order: "family" in midspan.json; the catalog, for a model from `midspan models pull`; "model_type" in
config.json; and if that is ambiguous, the tokens of the tokenizer.

    model_type "Dream"                        DreamOn with <|expand|>, DiffuCoder with <|dlm_pad|>, else Dream-Coder
    model_type "a2d-qwen2", -qwen3, -llama    dLLM's conversions
    model_type "llada"                        LLaDA
    model_type "qwen2" with a mask token      Open-dCoder; without one it is Qwen itself, which is not a masked model
                                              but reads left to right: models/qwen_fim/
"""

from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.library.resolve import known_model
from engine.models.masked.dream import DIFFUCODER, DREAM, DREAMON
from engine.models.masked.llada import LLADA
from engine.models.masked.qwen import DLLM_QWEN, OPEN_DCODER
from engine.models.stock.checkpoint import NOTES, Checkpoint
from engine.models.stock.family import ModelFamily

QWEN_FIM = "qwen-fim"
MASKED_FAMILIES = {family.name: family for family in (DREAM, DREAMON, DIFFUCODER, OPEN_DCODER, DLLM_QWEN, LLADA)}


def reads_left_to_right(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is Qwen itself, or is named so. Raises ModelError if its folder is damaged."""
    known = known_model(checkpoint.folder)
    if name := checkpoint.notes.family or ("" if known is None else known.family):
        return name == QWEN_FIM
    return checkpoint.config.get("model_type") == "qwen2" and not _has_mask(checkpoint)


def denoises(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is a masked model by its catalog entry or its files. Raises ModelError if damaged."""
    known = known_model(checkpoint.folder)
    if name := checkpoint.notes.family or ("" if known is None else known.family):
        return name != QWEN_FIM
    masked_types = {each for family in MASKED_FAMILIES.values() for each in family.model_types}
    return _has_mask(checkpoint) or checkpoint.config.get("model_type") in masked_types - {"qwen2"}


def family_of(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ModelFamily:
    """Return the family of a checkpoint. Raises ModelError if it is unknown, or contradicts config.json."""
    known = known_model(checkpoint.folder)
    name = checkpoint.notes.family or ("" if known is None else known.family)
    model_type = checkpoint.config.get("model_type")
    family = MASKED_FAMILIES.get(name) if name else _by_files(checkpoint, tokenizer)
    if family is None:
        said = f"of family {name!r}" if name else f"of model_type {model_type!r}"
        remedy = f'or set "family" in {NOTES} there to one of {", ".join((*MASKED_FAMILIES, QWEN_FIM))}'
        raise ModelError(
            f"the model in {checkpoint.folder} is {said}, which is not supported; use another model, {remedy}"
        )
    if model_type not in family.model_types:
        raise ModelError(
            f"the model in {checkpoint.folder} is said to be of family {family.name}, but its config.json has "
            f"model_type {model_type!r} and not {' or '.join(family.model_types)}"
        )
    return family


def _by_files(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ModelFamily | None:
    match checkpoint.config.get("model_type"):
        case "Dream":
            configured = {**checkpoint.generation, **checkpoint.config}
            if "expand_token_id" in configured or tokenizer.token_to_id("<|expand|>") is not None:
                return DREAMON
            return DREAM if tokenizer.token_to_id("<|dlm_pad|>") is None else DIFFUCODER
        case "qwen2":
            return OPEN_DCODER if _has_mask(checkpoint) else None
        case "llada":
            return LLADA
        case other:
            return DLLM_QWEN if other in DLLM_QWEN.model_types else None


def _has_mask(checkpoint: Checkpoint) -> bool:
    return bool(checkpoint.tokenizer.get("mask_token") or checkpoint.config.get("mask_token_id"))
