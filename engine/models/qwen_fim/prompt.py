"""A hole as the prompt that Qwen2.5-Coder was trained on: the prefix, then the suffix, then the middle (PSM).

    <|repo_name|>name <|file_sep|>snippet ... <|file_sep|>path
    <|fim_prefix|>code above<|fim_suffix|>code below | <|fim_middle|>

Typing changes the end of the prefix, and the suffix comes after it. So each key press reads the suffix again, while
everything before the cursor stays cached. The order suffix, prefix (SPM) would keep the suffix cached too, but nothing
says that the released models were trained on it. So the suffix is short instead: its nearest lines matter most.
"""

from collections.abc import Callable, Sequence

import attrs

from engine.fill.interface import Layout
from engine.models.embedded.layout import short_path
from engine.models.qwen_fim.special_tokens import FimTokens
from engine.protocol.messages import Fill, Snippet, left_edge

SUFFIX_TOKENS = 128
"""About ten lines, read again with every key press: about 0.1 s with a 0.5B model on two cores (estimated)."""
_TOKEN_CHARACTERS = 8
"""A generous bound for the characters per token. Text beyond it is cut before it is tokenized."""


@attrs.frozen(kw_only=True)
class PromptLayout(Layout):
    """A laid-out hole with its request, which a drafter lays out in its own tokens."""

    fill: Fill


class FimPrompt:
    """Lays out holes in at most `window` tokens, including the middle. `window` is at least 64."""

    def __init__(
        self,
        encode: Callable[[str], list[int]],
        breaks_line: Callable[[int], bool],
        special_tokens: FimTokens,
        window: int,
    ) -> None:
        self._encode, self._breaks_line, self._special_tokens, self._window = (
            encode,
            breaks_line,
            special_tokens,
            window,
        )

    def lay_out(self, fill: Fill) -> PromptLayout:
        """Return the tokens of a hole before <|fim_middle|>, which is the first anchor."""
        room = self._window - min(fill.max_tokens, self._window // 2) - 3
        below = self._below(fill.suffix.replace("\r\n", "\n"), min(SUFFIX_TOKENS, room // 3))
        head = self._head(fill.path, fill.snippets, (room - len(below)) // 3)
        above = self._above(fill.prefix, room - len(below) - len(head))
        context = [*head, self._special_tokens.prefix, *above, self._special_tokens.suffix, *below]
        return PromptLayout(context=context, fill=fill, above=above, below=below, anchor=self._special_tokens.middle)

    def _below(self, suffix: str, room: int) -> list[int]:
        """Return the first lines of the suffix that fit; if the first line is too long, its start."""
        tokens = self._encode(suffix[: room * _TOKEN_CHARACTERS])
        if len(tokens) <= room:
            return tokens
        ends = [index + 1 for index, token in enumerate(tokens[:room]) if self._breaks_line(token)]
        return tokens[: ends[-1] if ends else room]

    def _above(self, prefix: str, room: int) -> list[int]:
        """Return the end of the prefix that fits.

        Its left edge moves in strides, both in characters and in tokens, so that most key presses keep the cached
        context.
        """
        reach = max(1, room) * _TOKEN_CHARACTERS
        prefix = prefix[left_edge(len(prefix), 2 * reach, reach) :]
        tokens = self._encode(prefix.replace("\r\n", "\n"))
        return tokens[left_edge(len(tokens), room, room // 4) :]

    def _head(self, path: str, snippets: Sequence[Snippet], room: int) -> list[int]:
        """Return the snippets and the path of the hole's file; [] without both.

        The first folder of the path serves as the name of the repository, which is not known.
        """
        special = self._special_tokens
        if special.file is None or not (path or snippets):
            return []
        own = [special.file, *self._encode(f"{short_path(path)}\n")] if path else []
        name, folder, _ = short_path(path).partition("/")
        head = [special.repository, *self._encode(f"{name}\n")] if folder and special.repository is not None else []
        room -= len(head) + len(own)
        if room < 0:
            return []
        related: list[int] = []
        for snippet in snippets:  # the first matters most, so it comes last, nearest to the hole
            if len(snippet.text) > room * _TOKEN_CHARACTERS:
                continue
            block = [special.file, *self._encode(f"{short_path(snippet.path)}\n{snippet.text}\n")]
            if len(related) + len(block) <= room:
                related = [*block, *related]
        return [*head, *related, *own]
