"""The pipeline: `plan` turns a cursor into a request for the engine, and `present` its answer into texts to show.

The gate in it shows what is worth its price: of all ends of a fill, the one with the largest expected net benefit.
"""

import math
import re
from collections.abc import Sequence
from itertools import accumulate

import attrs

from engine.protocol.confidence import (
    Price,
    confidence_between,
    first_line_confidence,
    start_confidence,
)
from engine.protocol.messages import (
    DENOISING_RULES,
    Candidate,
    Fill,
    Filled,
    ModelInfo,
    Origin,
    Snippet,
    SourceName,
)
from lsp_server.documents.store import Snapshot
from lsp_server.hole.hole import Hole, context_budget_of, cut_hole
from lsp_server.languages.language import BRACKETS, Language, balance
from lsp_server.settings import Settings
from lsp_server.suggest.insertion import DOUBTED, GUESSES, LEAST_LINE, ODDS, Odds, likeliest
from lsp_server.suggest.shape import shape, without_what_follows

_LONGEST = 30
"""Characters. Few suggestions that are right are longer, so what only these would be worth is not waited for."""
SURE = 0.9
"""The confidence from which the rule "threshold" commits tokens together."""
# A number, a name with the sign before it, a run of operators, or any other mark. A hyphen between letters may be part
# of a name (CSS, HTML, shell). So a start cannot end at such a hyphen, even if it is a minus.
_UNIT = re.compile(
    r"\d\w*(?:\.\d\w*|(?<=[eE])[+-]\d+)*"
    r"|[$@#]?\w[\w$]*(?:-[^\W\d][\w$]*)*"
    r"|[^\w\s()\[\]{}\"'`,;]+?(?=[$@#]?\w|[\s()\[\]{}\"'`,;]|$)"
    r"|\S"
)
_MOST_START, _MOST_ENDS = 400, 64
"""Characters of a line in which a start may end, and how many ends are looked at, the worthiest first."""
_CLOSES = 0.7
"""How likely a bracket that closes, or a line's last semicolon, must be right to be shown after a text that is worth
showing."""
_PAIRED = frozenset("()[]{}\"'`")
_BEGUN_NAME = re.compile(r"[^\W\d]\w*$")
_REST_OF_NAME = re.compile(r"\w+[^\w\s]*")


@attrs.frozen
class Presented:
    """A text to show. `confidence` is how likely its first line is right as far as it goes, between 0 and 1.

    `is_start` says that the text is only the start of a line. `source` gave most of the whole fill, and `origins`
    are where parts of the text come from, if the fill asked for them.
    """

    text: str
    is_start: bool
    confidence: float
    source: SourceName = "model"
    origins: list[Origin] = attrs.field(factory=list)


@attrs.frozen
class Plan:
    """A hole in `snapshot`, the request for the engine, and the settings that decide how its answer is presented.

    Where the engine is asked for more guesses than are wanted, the `most` likeliest are shown. `odds`: of insertions.
    """

    snapshot: Snapshot
    hole: Hole
    fill: Fill
    settings: Settings
    most: int = 1
    odds: Odds = ODDS


def plan(
    snapshot: Snapshot,
    offset: int,
    model: ModelInfo,
    settings: Settings,
    *,
    path: str,
    code_above: str = "",
    snippets: Sequence[Snippet] = (),
    candidates: int = 1,
    workspace: str = "",
) -> Plan:
    """Cut the hole at `offset`, with as much text around it as the model reads, and return the plan to fill it.

    `path` is the path that the model sees. `code_above` comes before the document's own text (the notebook cells above
    a cell), and `snippets` come from other files. The fill may look up the memory of `workspace`. The engine may end
    the fill early, once its first line can hardly be worth the price any more; with a gate of 0 every fill runs to its
    end and passes.
    """
    hole = cut_hole(snapshot, offset, context_budget_of(model, settings.context_tokens), code_above)
    if (price := believed(settings.gate, model, hole)) != settings.gate:
        settings = attrs.evolve(settings, gate=price)
    least, count = settings.gate.least_probability(_LONGEST), candidates
    if _inserts(hole, settings):
        least = min(least, LEAST_LINE)
        # A guess more costs some rows of passes, but of a server another request.
        count = candidates if model.server else max(candidates, GUESSES)
    fill = Fill(
        id=0,
        prefix=hole.prefix,
        suffix=hole.suffix,
        path=path,
        language=snapshot.language.id,
        snippets=list(snippets),
        extent=hole.extent,
        budget_ms=float(settings.budget_ms),
        max_tokens=settings.max_tokens,
        min_line_probability=least,
        rule=settings.rule,
        candidates=count,
        choose_from=1,  # A text that is sure enough to be shown unasked is nearly always the greedy one.
        workspace=workspace,
        memory=settings.memory,
        line=1 + snapshot.source.lines.at(offset),
    )
    return Plan(snapshot, hole, fill, settings, candidates, DOUBTED if model.doubt > 1 else ODDS)


def believed(price: Price, model: ModelInfo, hole: Hole) -> Price:
    """Return the price, raised by the model's doubt, but not of an insertion, which has odds of its own."""
    return price if hole.is_before_word else price.raised(model.doubt)


def present(plan: Plan, filled: Filled) -> list[Presented]:
    """Shape the candidates of `filled`, hide what is not worth its price, and return what remains, best first.

    Equal texts are returned once. With a gate of 0, each candidate is returned whole, unless shaping removes all of it.
    A text that a denoising model wrote in one step is hidden unless it is sure of each token: they were chosen apart.
    """
    presented: dict[str, Presented] = {}
    for candidate in filled.candidates:
        if is_hasty(candidate, filled):
            continue
        if (result := weigh(candidate, plan).shown) is not None:
            origins = _shown_origins(candidate, result.text)
            presented.setdefault(result.text, attrs.evolve(result, source=candidate.source, origins=origins))
    texts = list(presented.values())
    if _inserts(plan.hole, plan.settings):
        return sorted(texts, key=lambda each: each.confidence, reverse=True)[: plan.most]
    return texts


def is_hasty(candidate: Candidate, filled: Filled) -> bool:
    """Return whether a model that denoises wrote several tokens in one step, and is unsure of one."""
    at_once = filled.steps <= 1 and filled.rule in DENOISING_RULES
    return at_once and len(candidate.tokens) > 1 and min(candidate.confidence) < SURE


@attrs.frozen
class Weighed:
    """A candidate after shaping, "" if nothing is left, and what is shown of it, if anything.

    `confidence` is how likely its first line is right, and `characters` how long that line is to `price`.
    """

    price: Price
    shaped: str = ""
    confidence: float = 0.0
    characters: int = 0
    shown: Presented | None = None

    @property
    def worth(self) -> float:
        """In keys."""
        return self.price.worth(self.confidence, self.characters)

    @property
    def needed(self) -> float:
        """How likely the line must be right to be worth showing."""
        return self.price.least_probability(self.characters)


def weigh(candidate: Candidate, plan: Plan) -> Weighed:
    """Return what the price lets be shown of `candidate`, and why."""
    snapshot, hole, settings = plan.snapshot, plan.hole, plan.settings
    price = settings.gate
    if hole.is_before_word:
        inserted, free = likeliest(candidate, hole, snapshot.language, plan.odds), price.hides_nothing
        if inserted is not None and not (inserted.is_start and (free or settings.whole_lines)):
            weighed = Weighed(price, inserted.text, inserted.confidence, plan.odds.counted)
            if not free and weighed.worth <= 0:
                return weighed
            if shape(inserted.text, hole, snapshot, max_lines=1) == inserted.text:
                return attrs.evolve(weighed, shown=Presented(inserted.text, inserted.is_start, inserted.confidence))
        if not free:
            return Weighed(price)
    shaped = shape(candidate.text, hole, snapshot, settings.max_lines) or ""
    may_show = shaped and (price.hides_nothing or not begins_below(candidate, hole))
    shown = gated(candidate, shaped, hole, snapshot.language, settings) if may_show else None
    confidence = shown.confidence if shown is not None else first_line_confidence(candidate, shaped)
    line = (shown.text if shown is not None else shaped).strip().partition("\n")[0].rstrip()
    return Weighed(price_of(line, hole, price), shaped, confidence, len(line), shown)


def begins_below(candidate: Candidate, hole: Hole) -> bool:
    """Return whether the model leaves the cursor's empty line empty, and writes only below it.

    So between two functions: what comes next is right a line further down, and would be wrong here. The first line of
    a body is no such place: there the empty line is only the model's way to the indentation.
    """
    first, newline, _ = candidate.text.partition("\n")
    is_empty = not hole.line_before.strip() and not hole.line_after.strip()
    return is_empty and hole.cursor_context != "body" and bool(newline) and not first.strip()


def _inserts(hole: Hole, settings: Settings) -> bool:
    """Return whether code is inserted directly before a word, so that only what fits between both sides is shown."""
    return hole.is_before_word and not settings.gate.hides_nothing


def _shown_origins(candidate: Candidate, shown: str) -> list[Origin]:
    """Return the origins that reach into the shown text. Shaping may have cut it and changed its indentation."""
    shown = shown.strip()
    start = max(candidate.text.find(shown.partition("\n")[0].rstrip()), 0)
    end = start + len(shown)
    return [each for each in candidate.origins if each.start < end and each.start + len(each.text) > start]


@attrs.frozen
class Worthy:
    """A text, "" for nothing, how likely its first line is right, and what showing it is worth, in keys."""

    text: str = ""
    confidence: float = 1.0
    worth: float = 0.0


def gated(candidate: Candidate, text: str, hole: Hole, language: Language, settings: Settings) -> Presented | None:
    """Return what to show of `text`, the shaped `candidate`, or None if nothing is worth the price `settings.gate`.

    That is the start of its first line, the whole line, or the line and lines below it: whatever is worth most, and
    of equals the longest. The setting `whole_lines` hides starts. The price FREE hides nothing.
    """
    price = settings.gate
    if price.hides_nothing:
        return Presented(text, is_start=False, confidence=first_line_confidence(candidate, text))
    whole = worthy_lines(candidate, text, hole, price)
    start = Worthy() if settings.whole_lines else worthy_start(candidate, text, hole, language, price)
    # The whole line as a start is always worth as much as the line, because nothing is said about its end.
    if whole.text and (whole.worth >= start.worth or start.text == whole.text.partition("\n")[0].rstrip("\r")):
        return Presented(whole.text, is_start=False, confidence=whole.confidence)
    if not start.text:
        return None
    closed = _closed(candidate, start, text, hole, language, price)
    return Presented(closed.text, is_start=True, confidence=closed.confidence)


def worthy_start(candidate: Candidate, text: str, hole: Hole, language: Language, price: Price) -> Worthy:
    """Return the start of `text`'s first line that is worth most. `text` is `candidate` after shaping.

    A start ends after a name, a number or a mark. It does not end in a string or, at a line's end, in a bracket that it
    opened itself, with the sign of a comment, or with the text that follows the cursor.
    """
    line, indent, begin = _first_line(candidate, text)
    starts: list[Worthy] = []
    ends = [unit.end() for unit in _UNIT.finditer(line, 0, _MOST_START) if begin >= 0]
    sure = {end: start_confidence(candidate, begin, begin + end - indent) for end in ends}
    if price.part is not None and ends:
        for bound, confidence in _sure_parts(candidate, begin, begin + ends[0] - indent, price.part):
            sure[bound - begin + indent] = confidence
    for end, confidence in sure.items():
        if (worth := price_of(line[:end], hole, price).worth(confidence, end - indent)) > 0:
            starts.append(Worthy(line[:end], confidence, worth))
    starts.sort(key=lambda start: (start.worth, len(start.text)), reverse=True)
    return next((start for start in starts[:_MOST_ENDS] if _can_end(start.text, hole, language)), Worthy())


def _sure_parts(candidate: Candidate, start: int, end: int, least: float) -> list[tuple[int, float]]:
    """Return where the name from characters `start` to `end` may end too early, and how sure what is before that is.

    That is after each token in it up to which all is at least `least` sure.
    """
    bounds = [bound for bound in accumulate(map(len, candidate.tokens)) if start < bound <= end]
    parts = [(bound, confidence_between(candidate, start, bound)) for bound in bounds]
    return [(bound, sure) for bound, sure in parts if sure >= least]


def _closed(candidate: Candidate, start: Worthy, text: str, hole: Hole, language: Language, price: Price) -> Worthy:
    """Return `start` with the brackets after it that close open ones of its line, and the semicolon that ends it, as
    far as the model is sure of them.

    A wrong text costs much because it was read in vain. A wrong mark after a right text is one more key to delete.
    """
    line, indent, begin = _first_line(candidate, text)
    if hole.line_after.strip():
        return start
    end, confidence = len(start.text), 1.0
    opened = balance(hole.line_before + start.text, language).opened
    while line[end : end + 1] == BRACKETS[opened[-1].char] if opened else line[end:] == ";":
        sure = confidence_between(candidate, begin + len(start.text) - indent, begin + end + 1 - indent)
        if sure < _CLOSES or start.confidence * sure < (price.least or 0.0):
            break
        end, confidence, opened = end + 1, sure, opened[:-1]
    return attrs.evolve(start, text=line[:end], confidence=start.confidence * confidence)


def price_of(line: str, hole: Hole, price: Price) -> Price:
    """Return what it costs to show `line` in the hole: less if it is the rest of a begun name, and marks at most."""
    is_rest = _REST_OF_NAME.fullmatch(line) is not None and _BEGUN_NAME.search(hole.line_before) is not None
    return price.of_name() if is_rest else price


def worthy_lines(candidate: Candidate, text: str, hole: Hole, price: Price) -> Worthy:
    """Return `text`'s first line if all of it is worth showing, with those of the lines below that add to its worth.

    A fill that ended within its first line has no whole line: it was unsure, or too long for its canvas or its time.
    """
    line, indent, _ = _first_line(candidate, text)
    if candidate.finish == "complete" or "\n" in candidate.text.strip():
        confidence = first_line_confidence(candidate, text)
    else:
        return Worthy()
    worth = price_of(line, hole, price).worth(confidence, len(line) - indent)
    if worth <= 0:
        return Worthy()
    end, added = _further_lines(candidate, text, price)
    return Worthy(text[:end].rstrip("\r"), confidence, worth + confidence * added)


def _first_line(candidate: Candidate, text: str) -> tuple[str, int, int]:
    """Return the first line of `text`, its indentation, and where it begins in `candidate` after that, or -1."""
    line = text.partition("\n")[0].rstrip()
    indent = len(line) - len(line.lstrip())
    return line, indent, candidate.text.find(line[indent:])


def _further_lines(candidate: Candidate, text: str, price: Price) -> tuple[int, float]:
    """Return where to end `text` so that the lines below its first are worth most, and the keys that these add.

    Each line counts with the probability that those above it are right. Its newline is a key that is saved too. A line
    of marks only, as of a closing bracket, costs no glance.
    """
    lines = text.split("\n")
    position = max(candidate.text.find(lines[0].strip()), 0) + len(lines[0].strip())
    best_end, best, added, sure, end = len(lines[0]), 0.0, 0.0, 1.0, len(lines[0])
    for line in lines[1:]:
        end += 1 + len(line)
        if not (code := line.strip()):
            continue
        found = candidate.text.find(code, position)
        stop = found + len(code)
        if found < 0 or (candidate.finish != "complete" and "\n" not in candidate.text[stop:]):
            break
        confidence = confidence_between(candidate, position, stop)
        if not candidate.text[stop:].strip():
            confidence *= candidate.end_confidence
        # No key takes this line alone, and its newline is typed as one.
        worth = price.worth(confidence, len(code) + 2) + (0.0 if re.search(r"\w", code) else price.glance)
        if worth == -math.inf:
            break
        added, sure, position = added + sure * worth, sure * confidence, stop
        if added > best or (added == best and best):
            best_end, best = end, added
    return best_end, best


def _can_end(start: str, hole: Hole, language: Language) -> bool:
    ends_with_mark = start[-1] not in _PAIRED and not re.match(r"\w", start[-1])
    if ends_with_mark and hole.line_after.lstrip().startswith(start[-1]):
        return False
    if start.endswith(language.line_comments) or without_what_follows(start, hole, language) != start:
        return False
    return not _ends_in_own_string(start, hole, language) and not _ends_in_own_bracket(start, hole, language)


def _ends_in_own_bracket(start: str, hole: Hole, language: Language) -> bool:
    """Return whether `start` leaves a bracket open that it opened at a line's end, where nobody closes it.

    A block's bracket at its end is closed further down.
    """
    if hole.line_after.strip() or hole.cursor_context in ("string", "comment"):
        return False
    opened = balance(start, language).opened
    return len(opened) > start.endswith("{")


def _ends_in_own_string(start: str, hole: Hole, language: Language) -> bool:
    """Return whether `start` ends in a string that it opened: half a string helps nobody, and its quote stays open."""
    quote = balance(hole.line_before, language).quote
    if hole.cursor_context in ("string", "comment") and not quote:
        return False  # There, a quote may be an apostrophe.
    inside = balance(start, language, quote)
    return bool(inside.quote) and (not quote or inside.quote_closed is not None)
