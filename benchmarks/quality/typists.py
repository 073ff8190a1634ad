"""Ways to complete code that need no model: what every editor has, and the memory alone."""

import re
from collections import Counter

import attrs

from benchmarks.quality.typing_tasks import Screen, TypingTask
from engine.evaluation.measure import Workspaces
from engine.memory.mixture import MixedMemory
from engine.protocol.confidence import FEWEST_CHARACTERS, Price
from engine.protocol.messages import Fill

_WORD = re.compile(r"[^\W\d]\w*")
_MOST_TOKENS = 16


class WordCompletion:
    """The most frequent word of the file that begins as the word before the cursor does, after two typed letters."""

    def __init__(self, task: TypingTask) -> None:
        self._task = task

    async def __call__(self, typed: int) -> Screen:
        before = self._task.above + self._task.text[:typed]
        begun = re.search(r"[^\W\d]\w*$", before)
        if begun is None or len(begun[0]) < 2 or re.match(r"\w", self._task.text[typed:]) is None:
            return Screen()
        words = Counter(_WORD.findall(before[: begun.start()] + " " + self._task.below))
        longer = [word for word in words if word.startswith(begun[0]) and word != begun[0]]
        if not longer:
            return Screen()
        best = max(longer, key=lambda word: words[word])
        return Screen(best[len(begun[0]) :])


@attrs.define
class RunCompletion:
    """The most frequent follower of the longest known run of tokens, up to where the shares' product is worth most."""

    workspaces: Workspaces
    task: TypingTask
    workspace: str
    price: Price

    async def __call__(self, typed: int) -> Screen:
        prefix = self.task.above + self.task.text[:typed]
        fill = Fill(
            id=0, prefix=prefix, suffix=self.task.below, path=self.task.path, language="", workspace=self.workspace
        )
        layout = self.workspaces.model.lay_out(fill)
        memory = self.workspaces.memories.for_fill(fill, layout)
        text = b"" if memory is None else self._written(memory, list(layout.above), layout.typed.encode())
        rest = text.decode(errors="ignore").split("\n")[0]
        return Screen(rest) if len(rest) >= FEWEST_CHARACTERS else Screen()

    def _written(self, memory: MixedMemory, history: list[int], typed: bytes) -> bytes:
        """Return what comes after `typed`."""
        model = self.workspaces.model
        text, confidence = b"", 1.0
        best_text, most = b"", 0.0
        for _ in range(_MOST_TOKENS):
            unwritten = typed[len(text) :]
            found = memory.followers(history, model.compatible_tokens(unwritten) if unwritten else ())
            best = found.longest_run(0)
            if best is None:
                break
            index = best.likeliest
            confidence *= float(best.counts[index] / best.total)
            token = int(best.tokens[index])
            if token == model.end:
                break
            history.append(token)
            text += model.bytes_of(token)
            worth = self.price.worth(confidence, len(text) - len(typed))
            if worth >= most:
                best_text, most = text, worth
        return best_text[len(typed) :] if best_text.startswith(typed) else b""
