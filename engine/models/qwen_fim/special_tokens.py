"""The special tokens of a fill-in-the-middle prompt, found by their names in a checkpoint's tokenizer."""

from typing import Literal

import attrs
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.models.stock.checkpoint import NOTES, Checkpoint

_PREFIX, _SUFFIX, _MIDDLE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"
_REPOSITORY, _FILE = "<|repo_name|>", "<|file_sep|>"
_ENDS = ("<|endoftext|>", "<|fim_pad|>", "<|im_end|>", _FILE, _REPOSITORY, _PREFIX, _SUFFIX, _MIDDLE)
"""The eos_token_ids of the infilling examples in Qwen2.5-Coder's repository."""


Order = Literal["suffix first", "prefix first"]


@attrs.frozen
class FimTokens:
    """The ids of the special tokens. `ends` close a fill. If `repository` or `file` is None, prompts leave it out.

    order: of a prompt's parts (prompt.py).
    """

    prefix: int
    suffix: int
    middle: int
    ends: tuple[int, ...]
    repository: int | None = None
    file: int | None = None
    order: Order = "suffix first"


def fim_tokens_of(checkpoint: Checkpoint, tokenizer: Tokenizer) -> FimTokens:
    """Return a checkpoint's special tokens. Raises ModelError if it has none for filling in the middle."""
    prefix, suffix, middle = (tokenizer.token_to_id(text) for text in (_PREFIX, _SUFFIX, _MIDDLE))
    if prefix is None or suffix is None or middle is None:
        raise ModelError(
            f"the model in {checkpoint.folder} is a Qwen2 without a mask token and without {_PREFIX}, {_SUFFIX} and "
            f"{_MIDDLE}, so it cannot fill holes; use one that was trained for that, such as Qwen2.5-Coder, "
            f'or set "family" in {NOTES} there'
        )
    named = [tokenizer.token_to_id(text) for text in _ENDS]
    configured = [_ids(source.get("eos_token_id")) for source in (checkpoint.config, checkpoint.generation)]
    known = [number for number in named if number is not None] + [number for ids in configured for number in ids]
    present = [number for number in known if tokenizer.id_to_token(number) is not None]
    repository, file = tokenizer.token_to_id(_REPOSITORY), tokenizer.token_to_id(_FILE)
    return FimTokens(prefix, suffix, middle, tuple(dict.fromkeys(present)), repository, file)


def _ids(configured: object) -> list[int]:
    return [number for number in (configured if isinstance(configured, list) else [configured]) if type(number) is int]
