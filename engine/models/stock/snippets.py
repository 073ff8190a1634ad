"""Other files in the prompt, for models that read one file after another."""

from collections.abc import Callable, Sequence

from engine.protocol.messages import Snippet


def heading(path: str) -> str:
    """Return the line before a file's text."""
    return f"File {path}:\n"


def related_tokens(encode: Callable[[str], list[int]], snippets: Sequence[Snippet], room: int) -> list[int]:
    """Return the tokens of the snippets that fit into `room` tokens. The first snippet comes last, next to the hole."""
    blocks: list[list[int]] = []
    for snippet in snippets:
        block = encode(f"{heading(snippet.path)}{snippet.text}\n")
        if len(block) <= room:
            blocks.append(block)
            room -= len(block)
    return [token for block in reversed(blocks) for token in block]
