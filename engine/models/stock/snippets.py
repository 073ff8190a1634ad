"""Other files in the prompt, for models that read one file after another."""

from collections.abc import Callable, Sequence

from engine.protocol.messages import Snippet

TOKEN_CHARACTERS = 8
"""Tokens are shorter on average. A text with more characters for each token that there is room for is not tokenized."""


def heading(path: str) -> str:
    """Return the line before a file's text."""
    return f"File {path}:\n"


def related_tokens(encode: Callable[[str], list[int]], snippets: Sequence[Snippet], room: int) -> list[int]:
    """Return the tokens of the snippets that fit into `room` tokens. The first snippet comes last, next to the hole."""
    blocks: list[list[int]] = []
    for snippet in snippets:
        if len(snippet.text) > room * TOKEN_CHARACTERS:
            continue
        block = encode(f"{heading(snippet.path)}{snippet.text}\n")
        if len(block) <= room:
            blocks.append(block)
            room -= len(block)
    return [token for block in reversed(blocks) for token in block]
