"""Encoded contexts, kept and reused by longest common prefix."""

from engine.fill.interface import Context, Model


def common_prefix(first: list[int], second: list[int]) -> int:
    """Return how many tokens two lists share from their start."""
    bound = min(len(first), len(second))
    if first[:bound] == second[:bound]:
        return bound
    return next(at for at in range(bound) if first[at] != second[at])


class ContextCache:
    """Holds idle contexts, least recently used first. A context that a fill works in is not in the cache.

    Each belongs to a scope, and fills of other scopes do not find it: how fast a context was read would tell them that
    somebody else has the same text.
    """

    def __init__(self, model: Model, max_bytes: int) -> None:
        self._model, self._max_bytes = model, max_bytes
        self._idle: list[tuple[str, Context]] = []
        self._asked = self._reused = 0

    @property
    def bytes(self) -> int:
        return sum(context.bytes for _, context in self._idle.copy())

    @property
    def hit_rate(self) -> float:
        """The share of all context tokens that needed no encoding."""
        return self._reused / self._asked if self._asked else 0.0

    def take(self, tokens: list[int], scope: str = "") -> Context:
        """Return a context that holds the longest known prefix of `tokens`, for the caller alone.

        An idle context that shares most of its tokens is handed over. Of one that shares few, these few are copied: so
        a hole elsewhere in the file does not discard what the next keystroke here needs."""
        self._asked += len(tokens)
        own = [context for other, context in self._idle if other == scope]
        best = max(own, key=lambda context: common_prefix(context.tokens, tokens), default=None)
        shared = common_prefix(best.tokens, tokens) if best is not None else 0
        if best is None or shared == 0:
            return self._model.new_context()
        self._reused += shared
        if shared * 2 < len(best.tokens):
            return best.fork(shared)
        self._idle = [(other, context) for other, context in self._idle if context is not best]
        best.truncate(shared)
        return best

    def give_back(self, context: Context, scope: str = "") -> None:
        """Keep a context for later, unless it is empty. Over the bound, the least recently used ones leave.

        The last one stays even if it alone is over the bound, as with a large model; unless the bound is 0.
        """
        if context.tokens:
            self._idle.append((scope, context))
        kept = 1 if self._max_bytes else 0
        while len(self._idle) > kept and self.bytes > self._max_bytes:
            self._idle.pop(0)

    def clear(self) -> bool:
        """Drop all idle contexts; return whether there were any."""
        had, self._idle = bool(self._idle), []
        return had
