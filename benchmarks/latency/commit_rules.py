"""Fills the same holes, with the same weights, by several commit rules; compares milliseconds and exact matches.

Left to right is the twin that every rule is compared with. A hole belongs to the bucket of the length of its
left-to-right answer: that is the number of passes the twin needs, so all holes of a bucket are about as hard. The
context is encoded before the clock starts, the rules take turns at going first, and the times are the engine's own
(encode and denoise), so neither cache nor order nor socket favours one rule.
"""

import statistics
from collections.abc import Sequence

import attrs

from benchmarks.common.sources import Span
from engine.client.connection import EngineClient
from engine.protocol.messages import Fill, Filled, RuleName
from lsp_server.documents.store import Documents
from lsp_server.hole.hole import cut_hole

BUCKETS = ((1, 7), (8, 15), (16, 31), (32, 10_000))
_MAX_TOKENS = 64
# A fill that ended early on a busy machine would do less work than the others.
_BUDGET_MS = 60_000.0
_UNMEASURED = 2


@attrs.frozen
class Contender:
    """A commit rule with its name in the table; `steps` 0 means as many steps as the budget allows."""

    name: str
    rule: RuleName
    steps: int = 0


TWIN = Contender("left to right", "left-to-right")
CONTENDERS = (TWIN, Contender("denoise, 4 steps", "threshold", 4), Contender("draft and verify", "verify"))


@attrs.frozen
class Answer:
    """One contender's answer to one hole. `exact`: it equals the author's code, without white space at the ends."""

    contender: str
    ms: float
    passes: int
    tokens: int
    exact: bool
    same_as_twin: bool


@attrs.frozen
class RuleFigures:
    """One contender in one bucket. `speedup` is the twin's milliseconds over the contender's, on the same holes."""

    bucket: str
    contender: str
    holes: int
    ms: float
    passes: float
    tokens: float
    speedup: float
    exact: float
    same_as_twin: float


async def compare_rules(client: EngineClient, spans: Sequence[Span]) -> list[RuleFigures]:
    """Fill every hole by every contender; holes that the twin leaves empty belong to no bucket."""
    documents = Documents()
    denoises = client.welcome.model.noise != "none"
    contenders = [each for each in CONTENDERS if denoises or each.rule != "threshold"]
    for span in spans[:_UNMEASURED]:
        await _fill_by_all(client, contenders, as_fill(documents, span), span.middle, 0)
    rows = []
    for turn, span in enumerate(spans):
        rows.append(await _fill_by_all(client, contenders, as_fill(documents, span), span.middle, turn))
    figures: list[RuleFigures] = []
    for low, high in BUCKETS:
        inside = [row for row in rows if low <= row[0].tokens <= high]
        if inside:
            label = f"{low}-{high}" if high < BUCKETS[-1][1] else f"{low}+"
            figures.extend(_figures(label, inside, index) for index in range(len(contenders)))
    return figures


def as_fill(documents: Documents, span: Span) -> Fill:
    """Return the hole as the language server sends it; it may span lines if the author's middle does."""
    uri = span.path.as_uri()
    documents.open(uri, "python", 1, span.text)
    snapshot = documents.snapshot(uri)
    if snapshot is None:
        raise RuntimeError(f"{span.path} is open but has no snapshot")
    hole = cut_hole(snapshot, span.offset)
    documents.close(uri)
    return Fill(
        id=0,
        prefix=hole.prefix,
        suffix=hole.suffix,
        path=span.path.name,
        language=snapshot.language.id,
        extent="lines" if "\n" in span.middle else "line",
        budget_ms=_BUDGET_MS,
        max_tokens=_MAX_TOKENS,
    )


async def _fill_by_all(
    client: EngineClient, contenders: Sequence[Contender], fill: Fill, middle: str, turn: int
) -> list[Answer]:
    """Return the answers in the order of the contenders; `turn` decides which contender is asked first."""
    # Without a trace a fill drafts the last text at its hole, and would confirm what another contender wrote.
    fill = attrs.evolve(fill, trace=True)
    # With the same max_tokens, which decides how much context fits beside the fill.
    await client.fill(attrs.evolve(fill, rule=contenders[1].rule, steps=1))
    answers: dict[str, Filled] = {}
    for shift in range(len(contenders)):
        contender = contenders[(turn + shift) % len(contenders)]
        answers[contender.name] = await client.fill(attrs.evolve(fill, rule=contender.rule, steps=contender.steps))
    twin = answers[TWIN.name].candidates[0].text
    return [_judge(contender.name, answers[contender.name], middle, twin) for contender in contenders]


def _judge(contender: str, filled: Filled, middle: str, twin: str) -> Answer:
    first = filled.candidates[0]
    return Answer(
        contender=contender,
        ms=filled.ms.encode + filled.ms.denoise,
        passes=filled.steps,
        tokens=len(first.tokens),
        exact=first.text.strip() == middle.strip(),
        same_as_twin=first.text == twin,
    )


def _figures(bucket: str, rows: list[list[Answer]], index: int) -> RuleFigures:
    answers = [row[index] for row in rows]
    ms = sum(answer.ms for answer in answers)
    return RuleFigures(
        bucket=bucket,
        contender=answers[0].contender,
        holes=len(answers),
        ms=statistics.median(answer.ms for answer in answers),
        passes=statistics.fmean(answer.passes for answer in answers),
        tokens=statistics.fmean(answer.tokens for answer in answers),
        speedup=sum(row[0].ms for row in rows) / ms if ms else 0.0,
        exact=statistics.fmean(answer.exact for answer in answers),
        same_as_twin=statistics.fmean(answer.same_as_twin for answer in answers),
    )
