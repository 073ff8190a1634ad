"""The special tokens of a left-to-right model by their names: those of a prompt, and those that end a fill."""

from typing import Literal

import attrs
from tokenizers import Tokenizer

Order = Literal["suffix inside", "suffix last"]
"""The order of a prompt's parts: see prompt.py."""


@attrs.frozen
class Spelling:
    """How a family writes the tokens of its prompts, and the order of the parts.

    Qwen2.5-Coder was measured with its own weights: 46 of 60 holes in one line with the suffix before the code near
    above, 31 with it last (HumanEval-Infilling). StarCoder, Granite and SantaCoder were not. In the order that is taken
    a key press reads nothing but itself.
    """

    prefix: str
    suffix: str
    middle: str
    repository: str
    file: str
    order: Order = "suffix inside"


QWEN = Spelling("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
SPELLINGS = (
    QWEN,
    # StarCoder 2 and Granite; StarCoder and SantaCoder.
    Spelling("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
    Spelling("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<reponame>", "<filename>"),
)
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<fim_pad>", "<|end_of_text|>", "<|eot_id|>", "</s>")


@attrs.frozen
class FimTokens:
    """The ids of the special tokens. `ends` close a fill. If `repository` or `file` is None, prompts leave it out."""

    prefix: int
    suffix: int
    middle: int
    ends: tuple[int, ...]
    repository: int | None = None
    file: int | None = None
    order: Order = "suffix inside"


@attrs.frozen
class Specials:
    """`ends` close a fill; the first one is what a fill knows them by. Without `fim` the model reads no suffix."""

    ends: tuple[int, ...]
    begin: int | None
    fim: FimTokens | None


def specials_of(tokenizer: Tokenizer, end: int | None = None, begin: int | None = None) -> Specials | None:
    """Return a tokenizer's special tokens; None if nothing ends a fill. end, begin: what the model's file names."""
    added = tokenizer.get_added_tokens_decoder()
    known = [number for text in _ENDS if (number := tokenizer.token_to_id(text)) in added and number is not None]
    ends = tuple(dict.fromkeys(([end] if end in added and end is not None else []) + known))
    for spelling in SPELLINGS:
        *texts, order = attrs.astuple(spelling)
        prefix, suffix, middle, repository, file = (
            number if number in added else None for number in map(tokenizer.token_to_id, texts)
        )
        if prefix is not None and suffix is not None and middle is not None:
            others = tuple(number for number in (prefix, suffix, middle, repository, file) if number is not None)
            ends = tuple(dict.fromkeys((*ends, *others)))
            return Specials(ends, begin, FimTokens(prefix, suffix, middle, ends, repository, file, order))
    return Specials(ends, begin, None) if ends else None
