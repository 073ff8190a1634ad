"""A region of a file that a client wants back, rewritten, and how a model for edits is asked for it."""

from collections.abc import Awaitable, Callable

import attrs

from engine.protocol.messages import Fill, plain
from engine.protocol.rewrite import PastEdit, Rewrite, has_merge_marks

EDITS = "edits"
"""Contexts of rewrites are kept apart from those of fills, where one model does both: the end of their scope."""
_MOST_TOKENS, _MOST_NEW_TOKENS = 2048, 64
_BUDGET_MS = 60_000.0
"""Half of a region is none, so the client says when it has waited enough: it closes the connection."""


@attrs.frozen
class Rewriting:
    """A region of a file that a client wants back, rewritten; `above` and `below` are the text around it.

    `cursor` is the offset of the cursor in `region`. `latest` has the hunks of the newest edit of this file, as a diff
    without its head; "" if there was none. `marks` are the offsets in `region` of numbered marks that the client set.
    `edits` are the last ones of all files, the newest last.
    """

    path: str
    above: str
    region: str
    below: str
    cursor: int
    latest: str = ""
    marks: tuple[int, ...] = ()
    edits: tuple[PastEdit, ...] = ()

    def filled(self, text: str) -> str:
        """Return the region with a text at the cursor."""
        return self.region[: self.cursor] + text + self.region[self.cursor :]

    def asked_of(self, fill: Fill) -> Fill | None:
        """Return a fill that asks a model for edits for the whole region; None for one that must not be rewritten."""
        above, region, below = (text.replace("\r\n", "\n") for text in (self.above, self.region, self.below))
        cursor = len(self.region[: self.cursor].replace("\r\n", "\n"))
        region = region if region.endswith("\n") else f"{region}\n"
        if "\r" in region or plain(region) != region or has_merge_marks(region):
            return None
        return attrs.evolve(
            fill,
            prefix=above,
            suffix=below,
            extent="lines",
            max_tokens=min(_MOST_TOKENS, len(region) + _MOST_NEW_TOKENS),
            memory="off",
            budget_ms=_BUDGET_MS,
            rewrite=Rewrite(region, cursor, edits=[*self.edits]),
        )

    def answered(self, text: str) -> str | None:
        """Return the region as a model wrote it, with its own line ends; None if it changes nothing or takes back."""
        newline = "\r\n" if "\r\n" in self.region else "\n"
        region = text.replace("\n", newline)
        region = region if self.region.endswith("\n") else region.removesuffix(newline)
        edits = ((one.before.replace("\n", newline), one.after.replace("\n", newline)) for one in self.edits)
        back = [self.region.replace(after, before) for before, after in edits if after]
        return None if region in (self.region, *back) or has_merge_marks(text) else region


NextEdit = Callable[[Rewriting], Awaitable[str | None]]
"""Returns a region with the user's last edit repeated once; None where there is nothing to repeat."""


async def no_next_edit(_: Rewriting) -> str | None:
    """Repeat nothing."""
    return None
