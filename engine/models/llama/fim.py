"""The special tokens of a left-to-right model by their names: those of a prompt, and those that end a fill."""

import attrs
from tokenizers import Tokenizer

from engine.models.qwen_fim.special_tokens import FimTokens

_SPELLINGS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<reponame>", "<filename>"),
)
"""How Qwen, StarCoder 2 with Granite, and StarCoder with SantaCoder write prefix, suffix, middle, repository, file."""
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<fim_pad>", "<|end_of_text|>", "<|eot_id|>", "</s>")


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
    for spelling in _SPELLINGS:
        prefix, suffix, middle, repository, file = (
            number if number in added else None for number in map(tokenizer.token_to_id, spelling)
        )
        if prefix is not None and suffix is not None and middle is not None:
            others = tuple(number for number in (prefix, suffix, middle, repository, file) if number is not None)
            ends = tuple(dict.fromkeys((*ends, *others)))
            return Specials(ends, begin, FimTokens(prefix, suffix, middle, ends, repository, file))
    return Specials(ends, begin, None) if ends else None
