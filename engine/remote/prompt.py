"""Prompts to fill in the middle, for servers that take no suffix: the marks that each family of models learned.

Where a file of the user's holds such a mark as text, the server reads it as the mark: the text interface has no escape.
"""

import attrs


@attrs.frozen
class FimTags:
    """What stands before the prefix, before the suffix and before the middle."""

    prefix: str
    suffix: str
    middle: str

    def prompt(self, prefix: str, suffix: str) -> str:
        """Return the text after which the model writes the middle."""
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
KNOWN = ", ".join(_FAMILIES)


def marks_of(model: str) -> FimTags | None:
    """Return the marks of the family that a model's name tells; None where it tells none that we know."""
    name = model.lower()
    return next((marks for family, marks in _FAMILIES.items() if family in name), None)
