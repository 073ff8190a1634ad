"""What a prompt for a server holds: how much of the file, and the tags between its parts.

Servers that take no suffix get a fill-in-the-middle prompt with the tags that their model was trained on. If the user's
file contains such a tag as text, the server reads it as the tag: its text interface has no escape.
"""

import attrs

from engine.protocol.left_edge import left_edge

PREFIX_CHARACTERS = 12_000
SUFFIX_CHARACTERS = 4_000
SNIPPET_CHARACTERS = 8_000
"""Of all snippets together."""
_STRIDE = 2_000


@attrs.frozen
class FimTags:
    """The tags that a model was trained on: before the prefix, before the suffix and before the middle."""

    prefix: str
    suffix: str
    middle: str

    def prompt(self, prefix: str, suffix: str) -> str:
        """Return the prompt that the model continues with the middle."""
        return f"{self.prefix}{prefix}{self.suffix}{suffix}{self.middle}"


_PIPED = FimTags("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_FAMILIES = {
    "qwen": _PIPED,
    "codegemma": _PIPED,
    "starcoder": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "granite": FimTags("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "codellama": FimTags("<PRE> ", " <SUF>", " <MID>"),
    "deepseek-coder": FimTags("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001  # these are its tokens
}
KNOWN_FAMILIES = ", ".join(_FAMILIES)
ALL_TAGS = tuple(dict.fromkeys(_FAMILIES.values()))


def tags_of(model: str) -> FimTags | None:
    """Return the tags of a model whose name contains a known family's; None for all other names."""
    name = model.lower()
    return next((tags for family, tags in _FAMILIES.items() if family in name), None)


def clip_prefix(prefix: str) -> str:
    """Return the end of a prefix, at most PREFIX_CHARACTERS of it.

    The left edge moves in strides. So consecutive requests begin with the same text, and the server can reuse its
    cache.
    """
    return prefix[left_edge(len(prefix), PREFIX_CHARACTERS, _STRIDE) :]


def clip_suffix(suffix: str) -> str:
    """Return the beginning of a suffix, at most SUFFIX_CHARACTERS of it."""
    return suffix[:SUFFIX_CHARACTERS]
