"""Other files in front of the one with the hole, for families that read files one behind the other."""

from collections.abc import Callable, Sequence

from engine.protocol.messages import Snippet


def heading(path: str) -> str:
    """Return the line that stands before a file's text."""
    return f"File {path}:\n"


def related_tokens(encode: Callable[[str], list[int]], snippets: Sequence[Snippet], room: int) -> list[int]:
    """Return the tokens of those snippets that fit into `room`, the first of them last: nearest to the hole."""
    blocks: list[list[int]] = []
    for snippet in snippets:
        block = encode(f"{heading(snippet.path)}{snippet.text}\n")
        if len(block) <= room:
            blocks.append(block)
            room -= len(block)
    return [token for block in reversed(blocks) for token in block]
