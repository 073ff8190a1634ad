"""How much of a file goes to a server at the most."""

PREFIX_CHARACTERS = 12_000
SUFFIX_CHARACTERS = 4_000
SNIPPET_CHARACTERS = 8_000
"""Of all snippets together."""
_STRIDE = 2_000


def clip_prefix(prefix: str) -> str:
    """Return the end of a prefix, PREFIX_CHARACTERS at the most.

    Its left edge moves in strides, so that from one key to the next the beginning stays and the server can reuse what
    it has read of it.
    """
    over = max(0, len(prefix) - PREFIX_CHARACTERS)
    return prefix[-(-over // _STRIDE) * _STRIDE :]


def clip_suffix(suffix: str) -> str:
    """Return the beginning of a suffix, SUFFIX_CHARACTERS at the most."""
    return suffix[:SUFFIX_CHARACTERS]
