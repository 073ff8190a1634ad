"""What midspan/fill says besides the text if it is asked for a trace: how the hole was cut, and why a text is shown."""

from typing import Literal

import attrs
from lsprotocol import types

from engine.protocol.messages import Extent


@attrs.frozen
class HoleCut:
    """How the hole was cut out of the document.

    `read` is what the model was given of it, at most. `hidden` are the characters after the cursor that it was not
    given, because they only close what is open before the cursor. `cursor_context` is the kind of code at the cursor.
    """

    read: types.Range
    hidden: int
    extent: Extent
    cursor_context: Literal["rest of line", "statement", "body", "string", "comment"]


@attrs.frozen
class Verdict:
    """What an editor would have shown of a fill, and the number that decided.

    `written` is the model's own text, `shaped` what is left after shaping, and `shown` what the gate shows of that, ""
    for nothing. `confidence` is how likely the first line of `shown` is right, or of `shaped` where nothing is shown.
    It is shown if it is worth more than it costs: `worth`, in keys, is above 0. That is so from a confidence of
    `needed` on, for a text of this length; a short text may need more than 1.
    """

    written: str
    shaped: str
    shown: str
    is_start: bool
    confidence: float
    needed: float
    worth: float


@attrs.frozen
class FillTrace:
    """The trace of a fill."""

    hole: HoleCut
    verdict: Verdict
