"""Replays typing against a real midspan-lsp: each character is sent as an edit, followed by a request for a
suggestion.
"""

import asyncio
import time

import attrs

from benchmarks.common.sources import Span
from benchmarks.common.statistic import Percentiles
from engine.cli.cursor import Cursor
from engine.cli.lsp_client import LspSession
from engine.evaluation.keystrokes import is_start
from engine.protocol.editor_messages import FillOptions
from engine.protocol.lsp_messages import InlineItem
from engine.protocol.messages import Timings

# One key in this many sends midspan/fill, whose answer has the engine's own times; the others ask as an editor does.
_PROBE_EVERY = 6


@attrs.frozen
class Keystroke:
    """One request for a suggestion: milliseconds to its answer, and the kind of answer."""

    ms: float
    shown: bool
    reused: bool
    right: bool
    whole: bool


@attrs.frozen
class TypingFigures:
    """Latencies and shares of a typing session. Times are milliseconds; shares are of all requests.

    `right` and `whole` are shares of the shown suggestions. A suggestion is right if its first line is right as far as
    it goes (engine/evaluation/keystrokes.py), and whole if that line is the rest of the line being typed.
    """

    spans: int
    characters: int
    first_request_ms: float
    all_requests: Percentiles
    asked_of_engine: Percentiles
    reused: Percentiles
    queue: Percentiles
    encode: Percentiles
    denoise: Percentiles
    saved_by_reuse: float
    shown: float
    right: float
    whole: float
    context_from_cache: float


async def replay(session: LspSession, spans: list[Span], look_s: float = 0.0) -> TypingFigures:
    """Type every span and wait for the answer to each key; the engine must run already.

    look_s: seconds at each place before typing. Editors say where the cursor rests, and a slow model reads there.
    """
    strokes: list[Keystroke] = []
    probes: list[Timings] = []
    context = cached = 0
    await _connect(session, spans[0])
    for span in spans:
        await session.open(span.path, span.text)
        # After its answer the document is open; else opening would count for the first request.
        reused = (await session.status()).reused
        if look_s:
            await session.rest(Cursor.at_offset(span.path, span.text, span.offset))
            await asyncio.sleep(look_s)
        for typed in range(len(span.middle)):
            cursor = Cursor.at_offset(span.path, _text(span, typed), span.offset + typed)
            await session.type_text(cursor, span.middle[typed])
            after = Cursor.at_offset(span.path, _text(span, typed + 1), span.offset + typed + 1)
            if typed % _PROBE_EVERY == _PROBE_EVERY - 1:
                answer = await session.fill(after, FillOptions())
                probes.append(answer.ms)
                context, cached = context + answer.context_tokens, cached + answer.cached_tokens
                continue
            started = time.perf_counter()
            items = await session.suggest(after)
            ms = (time.perf_counter() - started) * 1000
            counted = (await session.status()).reused
            rest = span.middle[typed + 1 :]
            first = _first_line(items[0], after) if items else ""
            right, whole = is_start(first, rest), bool(first) and first == rest
            strokes.append(Keystroke(ms, bool(items), counted > reused, right, whole))
            reused = counted
        await session.close(span.path)
    return _figures(len(spans), strokes, probes, cached / context if context else 0.0)


async def _connect(session: LspSession, span: Span) -> None:
    """Let the server connect to the engine: only midspan/fill waits for that, a suggestion does not."""
    await session.open(span.path, span.text)
    await session.fill(Cursor.at_offset(span.path, span.text, span.offset), FillOptions())
    await session.close(span.path)


def _text(span: Span, typed: int) -> str:
    return span.text[: span.offset] + span.middle[:typed] + span.text[span.offset :]


def _first_line(item: InlineItem, cursor: Cursor) -> str:
    """Return what an item would add to the cursor's line; its range may start before the cursor, over typed text."""
    typed = 0 if item.range is None else cursor.character - item.range.start.character
    return item.insert_text[typed:].partition("\n")[0]


def _figures(spans: int, strokes: list[Keystroke], probes: list[Timings], from_cache: float) -> TypingFigures:
    shown = [stroke for stroke in strokes if stroke.shown]
    return TypingFigures(
        spans=spans,
        characters=len(strokes) + len(probes),
        first_request_ms=strokes[0].ms,
        all_requests=Percentiles.of([stroke.ms for stroke in strokes[1:]]),
        asked_of_engine=Percentiles.of([stroke.ms for stroke in strokes[1:] if not stroke.reused]),
        reused=Percentiles.of([stroke.ms for stroke in strokes if stroke.reused]),
        queue=Percentiles.of([probe.queue for probe in probes]),
        encode=Percentiles.of([probe.encode for probe in probes]),
        denoise=Percentiles.of([probe.denoise for probe in probes]),
        saved_by_reuse=sum(stroke.reused for stroke in strokes) / len(strokes),
        shown=len(shown) / len(strokes),
        right=sum(stroke.right for stroke in shown) / len(shown) if shown else 0.0,
        whole=sum(stroke.whole for stroke in shown) / len(shown) if shown else 0.0,
        context_from_cache=from_cache,
    )
