"""A fill under way: its context is read or reused, then its candidates are filled. Keeps its times."""

import math
import time
from collections.abc import Sequence

import attrs

from engine.errors import ModelError
from engine.fill.draft_planner import PassTimer
from engine.fill.follows import FOLLOWS_WEIGHT, LEAST_SHARE, MOST_ENDS, Following, is_whole, likelihood, probability
from engine.fill.interface import Bounds, Context, Filling, FillStrategy, FillTask, Model, Pass
from engine.fill.sampler import TEMPERATURE, Branch, PassResult, Sampler
from engine.fill.stream import StreamModel
from engine.memory.workspace import EngineMemories
from engine.protocol.messages import Candidate, Fill, Filled, Origin, Progress, RuleName, Timings
from engine.schedule.caches import ContextCache

JOINT_ROWS = 48
"""A context that lacks at most this many tokens is read in the first pass of its canvas, not in one of its own."""
SPARED_ROWS = 64
"""A context that lacks at most this many tokens is not read ahead: the fill itself soon has them."""
BRANCHING: tuple[RuleName, ...] = ("verify", "left-to-right")
"""Rules that commit left to right. Their other candidates begin where the first one was least sure."""


class Job:
    """Built on the worker thread, because laying out a hole and taking a context cost time."""

    def __init__(
        self,
        fill: Fill,
        model: Model,
        cache: ContextCache,
        submitted: float,
        memories: EngineMemories | None = None,
        most_tokens: int | None = None,
        guess: str = "",
    ) -> None:
        """`most_tokens` bounds the fill further than its own max_tokens does, because many wait; the layout stays.

        guess: what is probably written.
        """
        self._started = time.perf_counter()
        if memories is not None and (related := memories.related(fill)):
            # Code that resembles the hole matters more than other open files, so it comes first.
            fill = attrs.evolve(fill, snippets=[*related, *fill.snippets])
        self.fill, self._model, self._submitted = fill, model, submitted
        self._most_tokens = min(fill.max_tokens, fill.max_tokens if most_tokens is None else most_tokens)
        of_rule = model.default if fill.rule == "default" else FillStrategy(fill.rule)
        crowded = self._most_tokens < fill.max_tokens
        choose_from = fill.choose_from or (1 if fill.progress or crowded else of_rule.choose_from)
        self._strategy = FillStrategy(of_rule.rule, fill.steps or of_rule.steps, choose_from)
        self._deadline = submitted + fill.budget_ms / 1000
        self._layout = model.lay_out(fill)
        self._scored: Sequence[int] = ()
        if fill.scored:
            if not (isinstance(model, StreamModel) and model.info.canvas_tokens):
                raise ModelError(f"{model.info.name} cannot say how likely a text is; the embedded model can")
            text = self._layout.typed + fill.scored
            self._scored = model.tokenizer.encode(text, add_special_tokens=False).ids
        self._draft: Sequence[int] = ()
        if guess and self._strategy.rule == "verify" and isinstance(model, StreamModel):
            text = self._layout.typed + guess
            tokens, ended = (model.tokenizer.encode(each, add_special_tokens=False).ids for each in (text, text + "\n"))
            # A text that was cut at the end of its line may have lost the newline that its last token has.
            self._draft = (ended if len(ended) == len(tokens) else tokens)[: self._most_tokens]
        self._memories = memories
        self._memory = None if memories is None or fill.only_read else memories.for_fill(fill, self._layout)
        self._origins: list[list[Origin]] = []
        self._context = cache.take(self._layout.context, fill.scope)
        self._cached = len(self._context.tokens)
        self._joint_rows = JOINT_ROWS
        if fill.only_read:
            # Nothing is read, or all of it: no canvas has a pass that could read the rest.
            self._joint_rows = 0 if len(self._layout.context) - self._cached > SPARED_ROWS else SPARED_ROWS
        self._fillings: list[Filling] = []
        self._contexts: list[Context] = []
        """One for each filling."""
        self._branches, self._choose_from = 0, 1
        if self._strategy.rule in BRANCHING and not fill.temperature and not self._scored:
            if self._layout.follows is not None:
                self._choose_from = self._strategy.choose_from
            self._branches = max(fill.candidates, self._choose_from) - 1
        self._followings: list[Following] = []
        self._running: list[Filling | Following] = []
        self._rounds = 0
        self._encode_ms = self._denoise_ms = 0.0
        self._ended = 0.0
        self._expected_ms: float | None = None
        self.stepped = False
        """Whether the first candidate, which is the one that `progress` shows, took part in the last passes."""

    def passes(self, encode_rows: int) -> list[Pass]:
        """Return what to run next: a piece of the context, or a pass for every candidate that is not done."""
        self.stepped = False
        if self.unread:
            unread = self._layout.context[len(self._context.tokens) :]
            return [self._model.read(self._context, unread[:encode_rows])]
        if self.fill.only_read:
            return []
        if not self._fillings:
            self._fillings = [self._start(Sampler(others=self._branches))]
            if not self._branches:
                self._fillings += self._drawn()
        self._running = self._unfinished()
        return [filling.next_pass() for filling in self._running]

    @property
    def unread(self) -> int:
        """How many tokens of the context passes of their own read before the fill's first one."""
        unread = 0 if self._fillings else len(self._layout.context) - len(self._context.tokens)
        return unread if unread > self._joint_rows else 0

    @property
    def lacks(self) -> int:
        """How many tokens of the hole's context are not read."""
        return len(self._layout.context) - len(self._context.tokens)

    @property
    def text(self) -> str:
        """What the first candidate has written so far."""
        return self._fillings[0].answer().text if self._fillings else ""

    def absorb(self, index: int, result: PassResult, elapsed_ms: float, expected_ms: float) -> None:
        """Take the result of pass number `index` of those that `passes` returned last.

        `elapsed_ms` is the time of the whole batch, `expected_ms` what the next such batch should take.
        """
        if not self._fillings:
            self._encode_ms += elapsed_ms
            return
        begun = time.perf_counter()
        left_ms = (self._deadline - begun) * 1000
        self._running[index].absorb(result, 1 + int(left_ms / max(expected_ms, 0.1)))
        self._expected_ms = expected_ms
        self.stepped = self.stepped or self._running[index] is self._fillings[0]
        if index == 0:  # Choosing tokens counts as well.
            self._rounds += 1
            self._denoise_ms += elapsed_ms + (time.perf_counter() - begun) * 1000

    def done(self, timer: PassTimer) -> bool:
        """Return whether nothing is left to do. Close what is past its deadline, or would be after one more pass."""
        if self.fill.only_read:
            return not self.unread or time.perf_counter() > self._deadline
        expected = self._expected_ms
        if expected is None:
            expected = timer.expect(self._model.info.canvas_tokens)
        expected /= 1000
        late = time.perf_counter() + expected > self._deadline
        if late and not self._fillings:
            self._fillings = [self._start(Sampler())]  # A hole that had no time at all is answered with an empty text.
        unfinished = self._unfinished()
        if self._branches and self._fillings and not unfinished and not late:
            started = self._branched(self._fillings[0])
            self._fillings += started
            unfinished += started
            self._branches = 0
        if self._choose_from > 1 and not (unfinished or self._followings or late):
            self._followings = self._followed()
            unfinished += self._followings
        if late:
            for each in unfinished:
                each.close("deadline")
        over = late or (bool(self._fillings) and not unfinished)
        if over:
            self._ended = time.perf_counter()
            if self.fill.explain:
                self._explain()
        return over

    def _unfinished(self) -> list[Filling | Following]:
        running: list[Filling | Following] = [*self._fillings, *self._followings]
        return [each for each in running if each.finish is None]

    def _explain(self) -> None:
        if self._memories is not None:
            explain = self._memories.explain
            self._origins = [explain(self.fill, self._layout, each.committed()) for each in self._fillings]

    def _drawn(self) -> list[Filling]:
        fill = self.fill
        temperature = fill.temperature or TEMPERATURE
        samplers = [Sampler(temperature, fill.top_p, fill.seed + number) for number in range(1, fill.candidates)]
        return [self._start(sampler, self._fork()) for sampler in samplers]

    def _branched(self, greedy: Filling) -> list[Filling]:
        """Start the candidates that deviate from the greedy one, each by the token that is likeliest after the same
        ones, and go on greedily; drawn ones for a model that keeps no less likely tokens."""
        branches: list[Branch] = greedy.branches(self._branches)
        least, asked = LEAST_SHARE * math.exp(likelihood(greedy.answer())), self.fill.candidates - 1
        if self.fill.extent == "line":
            least = max(least, self.fill.min_line_probability)
        branches = [branch for at, branch in enumerate(branches) if at < asked or branch.probability >= least]
        samplers = [Sampler(others=self._branches, branch=branch) for branch in branches]
        return [self._start(sampler, self._fork()) for sampler in samplers] or self._drawn()

    def _followed(self) -> list[Following]:
        """Return the passes that look at what follows each text; none where there is nothing to choose."""
        layout, followings = self._layout, dict[str, Following]()
        for filling, context in zip(self._fillings, self._contexts, strict=True):
            answer = filling.answer()
            if not layout.follows or not is_whole(answer):
                continue
            ends = [len(layout.typed) + len(answer.text)]
            if layout.resumes is not None and self.fill.extent == "lines":
                lines = filling.line_ends()[:MOST_ENDS]
                ends = lines + (ends if answer.finish == "complete" or not lines else [])
            followings[answer.text] = Following(self._model, context, layout, filling, ends)
        several = len(followings) > 1 or any(len(each.ends) > 1 for each in followings.values())
        return list(followings.values()) if several else []

    def _fork(self) -> Context:
        """Return a copy of what is read of the hole's own tokens."""
        return self._context.fork(min(len(self._context.tokens), len(self._layout.context)))

    def _start(self, sampler: Sampler, context: Context | None = None) -> Filling:
        fill, context = self.fill, context or self._context
        self._contexts.append(context)
        task = FillTask(
            context,
            self._layout,
            Bounds(fill.extent, self._most_tokens, fill.min_line_probability),
            sampler,
            self._strategy,
            self._memory,
            self._draft if sampler.branch is None else sampler.branch.tokens,
            self._scored,
        )
        return self._model.start_fill(task)

    def progress(self) -> Progress:
        """Return the canvas of the first candidate."""
        ms = round((time.perf_counter() - self._submitted) * 1000, 3)
        if not self._fillings:
            return Progress(self.fill.id, 0, [], ms=ms)
        first = self._fillings[0]
        return Progress(self.fill.id, first.steps, first.canvas(), first.cells() if self.fill.trace else [], ms)

    def filled(self) -> Filled:
        """Return the answer: the greedy candidate, then the others, the likeliest first. Equal texts are given once.

        A fill that chooses from several has the best first.
        """
        answers = [filling.answer() for filling in self._fillings]
        if self._origins:
            pairs = zip(answers, self._origins, strict=True)
            answers = [attrs.evolve(answer, origins=origins) for answer, origins in pairs]
        answers[1:] = sorted(answers[1:], key=probability, reverse=True)
        if self._choose_from > 1:
            looked = all(each.finish == "complete" for each in self._followings)
            follows = {
                each.filling.answer().text: FOLLOWS_WEIGHT * each.likelihood for each in self._followings if looked
            }
            answers.sort(key=lambda answer: likelihood(answer) + follows.get(answer.text, 0.0), reverse=True)
        distinct: dict[str, Candidate] = {}
        for answer in answers:
            distinct.setdefault(answer.text, answer)
        ended = self._ended or time.perf_counter()
        return Filled(
            id=self.fill.id,
            candidates=list(distinct.values())[: self.fill.candidates],
            steps=self._rounds if self._choose_from > 1 else self._fillings[0].steps if self._fillings else 0,
            chosen_from=self._choose_from,
            rule=self._strategy.rule,
            context_tokens=len(self._layout.context) + len(self._layout.before) + len(self._layout.after),
            cached_tokens=self._cached,
            ms=Timings(
                queue=round((self._started - self._submitted) * 1000, 3),
                encode=round(self._encode_ms, 3),
                denoise=round(self._denoise_ms, 3),
                total=round((ended - self._submitted) * 1000, 3),
            ),
        )

    def release(self, cache: ContextCache, owner: int) -> None:
        """Give the context back, cut to the hole's own tokens: nobody would ask for those of the fill again."""
        self._context.truncate(len(self._layout.context))
        cache.give_back(self._context, self.fill.scope, owner)
