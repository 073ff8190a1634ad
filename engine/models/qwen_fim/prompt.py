"""A hole as the prompt that Qwen2.5-Coder was trained on: the prefix, then the suffix, then the middle (PSM).

    <|repo_name|>name <|file_sep|>snippet ... <|file_sep|>path
    <|fim_prefix|>code above<|fim_suffix|>code below | <|fim_middle|>

The prefix is typed at, and the suffix stands behind it: each keystroke reads the suffix anew, while everything before
the cursor stays cached. The other order (SPM) would keep the suffix as well, but nothing says that the released models
have seen it. So the suffix is kept short instead: its nearest lines tell most of what it can tell.
"""

from collections.abc import Callable, Sequence

import attrs

from engine.fill.interface import Layout
from engine.models.embedded.layout import Encoder, short_path
from engine.models.qwen_fim.marks import FimTokens
from engine.protocol.messages import Fill, Snippet

SUFFIX_TOKENS = 128
"""Read anew with every key: about ten lines, some 0.1 s of a 0.5B model on two cores (inferred, not measured)."""
_TOKEN_CHARACTERS = 8
"""Tokens are shorter than that on average: what lies further off than so many characters a token is not even read."""


@attrs.frozen(kw_only=True)
class PromptLayout(Layout):
    """A laid-out hole with the fill that it stands for: a drafter lays it out in its own tokens."""

    fill: Fill


class FimPrompt:
    """Lays holes out in at most `window` tokens, the middle among them, and at least 64."""

    def __init__(self, encode: Encoder, breaks_line: Callable[[int], bool], marks: FimTokens, window: int) -> None:
        self._encode, self._breaks_line, self._marks, self._window = encode, breaks_line, marks, window

    def lay_out(self, fill: Fill) -> PromptLayout:
        """Return the tokens of a hole up to <|fim_middle|>, which is the first anchor."""
        room = self._window - min(fill.max_tokens, self._window // 2) - 3
        below = self._below(fill.suffix.replace("\r\n", "\n"), min(SUFFIX_TOKENS, room // 3))
        head = self._head(fill.path, fill.snippets, (room - len(below)) // 3)
        above = self._above(fill.prefix, room - len(below) - len(head))
        context = [*head, self._marks.prefix, *above, self._marks.suffix, *below]
        return PromptLayout(context=context, fill=fill)

    def _below(self, suffix: str, room: int) -> list[int]:
        """Return the nearest lines of the suffix; of one that is too long, its start."""
        tokens = self._encode(suffix[: room * _TOKEN_CHARACTERS])
        if len(tokens) <= room:
            return tokens
        ends = [at + 1 for at, token in enumerate(tokens[:room]) if self._breaks_line(token)]
        return tokens[: ends[-1] if ends else room]

    def _above(self, prefix: str, room: int) -> list[int]:
        """Return the nearest part of the prefix.

        Its left edge moves in strides, in characters as in tokens, so that most keystrokes leave the cached context as
        it is.
        """
        reach = max(1, room) * _TOKEN_CHARACTERS
        if len(prefix) > 2 * reach:
            prefix = prefix[(len(prefix) - reach) // reach * reach :]
        tokens = self._encode(prefix.replace("\r\n", "\n"))
        if len(tokens) <= room:
            return tokens
        stride = max(1, room // 4)
        return tokens[-(-(len(tokens) - room) // stride) * stride :]

    def _head(self, path: str, snippets: Sequence[Snippet], room: int) -> list[int]:
        """Return the files that come before the prefix, and the name of the hole's own; [] where there is none of both.

        The folder that the path begins with stands for the name of the repository, which nobody tells us.
        """
        marks = self._marks
        if marks.file is None or not (path or snippets):
            return []
        own = [marks.file, *self._encode(f"{short_path(path)}\n")] if path else []
        name, folder, _ = short_path(path).partition("/")
        head = [marks.repository, *self._encode(f"{name}\n")] if folder and marks.repository is not None else []
        room -= len(head) + len(own)
        if room < 0:
            return []
        related: list[int] = []
        for snippet in snippets:  # the first is the one that matters most: it comes last, nearest to the hole
            block = [marks.file, *self._encode(f"{short_path(snippet.path)}\n{snippet.text}\n")]
            if len(related) + len(block) <= room:
                related = [*block, *related]
        return [*head, *related, *own]
