"""Insertions: code that was cut out directly before a word, as when an argument or a call is added to a line.

Only a model of both sides can put it back: what is shown there must end where the word begins.
"""

import random
import re
from collections.abc import Sequence

import attrs

from engine.corpus.corpus import File
from engine.evaluation.keystrokes import Suggest, TypingTask

_LONGEST_FILE = 40_000
_SHORTEST = 5
"""Characters. Shorter code is not worth a suggestion."""
_SPAN = re.compile(
    r"(?<![\w.])(?<!def )(?<!func )(?<!fn )(?<!function )"  # The name of a function is no code to call it.
    r"[^\W\d][\w.]*(?:\(|, )(?=\w)"
)
_CODE = re.compile(r"\s*(?!#|//|/?\*)[^\n]*[()=\[\]{}]")
_TRIES = 400


@attrs.frozen
class Inserted:
    """How many places there were, at how many something was shown, and at how many it was what had been cut out."""

    places: int
    shown: int
    right: int


def insertions(files: Sequence[File], language: str, count: int, seed: int = 11) -> list[TypingTask]:
    """Return `count` tasks, each to write an argument (`name, `) or the start of a call (`foo(`) before a word.

    Equal seeds return equal tasks; there are fewer if the files have no more.
    """
    chosen = [file for file in files if file.language == language and len(file.text) <= _LONGEST_FILE]
    rng = random.Random(f"{seed} {language} insertions")
    tasks: list[TypingTask] = []
    for _ in range(count * _TRIES if chosen else 0):
        if len(tasks) == count:
            break
        file = rng.choice(chosen)
        task = cut_span(file, rng.randrange(file.text.count("\n") + 1), rng)
        if task is not None and task not in tasks:
            tasks.append(task)
    return tasks


def cut_span(file: File, line: int, rng: random.Random) -> TypingTask | None:
    """Return the task of a span in line number `line`, or None if that has no span."""
    rows = file.text.split("\n")
    row = rows[line]
    spans = [span.span() for span in _SPAN.finditer(row) if len(span[0]) >= _SHORTEST] if _CODE.match(row) else []
    if not spans:
        return None
    start, end = rng.choice(spans)
    above = "".join(other + "\n" for other in rows[:line])
    below = "\n".join([row[end:], *rows[line + 1 :]])
    return TypingTask(file.path, file.language, above + row[:start], row[start:end], below)


async def insert(tasks: Sequence[TypingTask], suggesters: Sequence[Suggest]) -> Inserted:
    """Ask once at each place."""
    texts = [(await suggest(0)).text for suggest in suggesters]
    right = sum(text == task.text for text, task in zip(texts, tasks, strict=True))
    return Inserted(len(tasks), sum(bool(text) for text in texts), right)
