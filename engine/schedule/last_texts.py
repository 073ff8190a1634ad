"""What was written last in each document: who types along it asks again at the next key, and it is the first draft.

A key is often what the model expected, shown or not. Then the answer is the rest of the last one, and one pass verifies
all of it. Nothing here changes a text: a draft that is wrong is refused.
"""

import attrs

from engine.protocol.messages import Fill

MOST_DOCUMENTS = 64
_TAIL = 200
"""Characters before the hole by which it is known again."""
_Key = tuple[int, str, str]


@attrs.frozen
class _Written:
    tail: str
    text: str


class LastTexts:
    """The last text of each document of each owner, which no other owner's fills draft."""

    def __init__(self) -> None:
        self._written: dict[_Key, _Written] = {}

    def note(self, fill: Fill, owner: int, text: str) -> None:
        """Keep what was written in a hole, or the known rest that begins so: a cancelled fill wrote less of it."""
        known = self.rest(fill, owner)
        text = known if known.startswith(text) else text
        key = _key(fill, owner)
        self._written.pop(key, None)
        if text:
            self._written[key] = _Written(fill.prefix[-_TAIL:], text)
        if len(self._written) > MOST_DOCUMENTS:
            del self._written[next(iter(self._written))]

    def rest(self, fill: Fill, owner: int) -> str:
        """Return how the last text goes on at the hole; "" if something else was typed, or somewhere else."""
        last = self._written.get(_key(fill, owner))
        if last is None:
            return ""
        recent = fill.prefix[-(_TAIL + len(last.text)) :]
        at = recent.rfind(last.tail) if last.tail else -1
        typed = recent[at + len(last.tail) :]
        return last.text[len(typed) :] if at >= 0 and last.text.startswith(typed) else ""


def _key(fill: Fill, owner: int) -> _Key:
    return owner, fill.scope, fill.path
