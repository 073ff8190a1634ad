"""A request under way: its context is read or reused, then its candidates are filled. Keeps its times."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from engine.fill.draft_planner import PassTimer
from engine.fill.follows import FOLLOWS_WEIGHT, LEAST_SHARE, MOST_ENDS, Following, is_whole, likelihood, probability
from engine.fill.interface import Bounds, Context, Filling, FillStrategy, FillTask, Model, Pass
from engine.fill.sampler import TEMPERATURE, Branch, PassResult, Sampler
from engine.fill.stream import StreamModel
from engine.memory.workspace import EngineMemories
from engine.protocol.messages import Candidate, Fill, Filled, HoleRequest, Origin, Progress, RuleName, Timings
from engine.schedule.caches import ContextCache

JOINT_ROWS = 48
"""A context that lacks at most this many tokens is read in the first pass of its canvas, not in one of its own."""
BRANCHING: tuple[RuleName, ...] = ("verify", "left-to-right")
"""Rules that commit left to right. Their other candidates begin where the first one was least sure."""


class OpenHole:
    """Opened on the worker thread, because laying out a hole and taking a context cost time.

    `deadline` is a time of perf_counter. `encode_ms` and `denoise_ms` are for whoever runs its passes to add up.
    """

    def __init__(
        self,
        request: HoleRequest,
        model: Model,
        cache: ContextCache,
        submitted: float,
        memories: EngineMemories | None = None,
    ) -> None:
        self._started, self._submitted, self._cache = time.perf_counter(), submitted, cache
        if memories is not None and (related := memories.related(request)):
            # Code that resembles the hole matters more than other open files, so it comes first.
            request = attrs.evolve(request, snippets=[*related, *request.snippets])
        self.request, self.model, self.memories = request, model, memories
        self.deadline = submitted + request.budget_ms / 1000
        self.layout = model.lay_out(request)
        self.context = cache.take(self.layout.context, request.scope)
        self._cached = len(self.context.tokens)
        self.encode_ms = self.denoise_ms = 0.0
        self._ended = 0.0

    @property
    def lacks(self) -> int:
        """How many tokens of the hole's context are not read."""
        return len(self.layout.context) - len(self.context.tokens)

    def read(self, rows: int) -> Pass:
        """Return the pass that reads so many more tokens of the context."""
        unread = self.layout.context[len(self.context.tokens) :]
        return self.model.read(self.context, unread[:rows])

    def fork(self) -> Context:
        """Return a copy of what is read of the hole's own tokens."""
        return self.context.fork(min(len(self.context.tokens), len(self.layout.context)))

    @property
    def ms(self) -> float:
        """The milliseconds since the request was submitted, until its end."""
        return round(((self._ended or time.perf_counter()) - self._submitted) * 1000, 3)

    def end(self) -> None:
        """Stop the clock."""
        self._ended = time.perf_counter()

    def answer(self, candidates: list[Candidate], steps: int, rule: RuleName, chosen_from: int = 1) -> Filled:
        """Return the answer to the request."""
        return Filled(
            id=self.request.id,
            candidates=candidates,
            steps=steps,
            chosen_from=chosen_from,
            rule=rule,
            context_tokens=len(self.layout.context) + len(self.layout.before) + len(self.layout.after),
            cached_tokens=self._cached,
            ms=Timings(
                queue=round((self._started - self._submitted) * 1000, 3),
                encode=round(self.encode_ms, 3),
                denoise=round(self.denoise_ms, 3),
                total=self.ms,
            ),
        )

    @contextmanager
    def released_on_error(self, owner: int) -> Iterator[None]:
        """Give the context back if what is done with the hole raises."""
        try:
            yield
        except BaseException:
            self.release(owner)
            raise

    def release(self, owner: int) -> None:
        """Give the context back, cut to the hole's own tokens: nobody would ask for those of the fill again."""
        self.context.truncate(len(self.layout.context))
        self._cache.give_back(self.context, self.request.scope, owner)


class Job(ABC):
    """The work on one request, once it has begun."""

    def __init__(self, hole: OpenHole) -> None:
        self.hole = hole
        self.stepped = False
        """Whether the first candidate, which is the one that `progress` shows, took part in the last passes."""

    @property
    @abstractmethod
    def unread(self) -> int:
        """How many tokens of the context passes of their own read before all else."""

    @abstractmethod
    def passes(self, encode_rows: int) -> list[Pass]:
        """Return what to run next: a piece of the context, or a pass for every candidate that is not done."""

    @abstractmethod
    def absorb(self, index: int, result: PassResult, elapsed_ms: float, expected_ms: float) -> None:
        """Take the result of pass number `index` of those that `passes` returned last.

        `elapsed_ms` is the time of the whole batch, `expected_ms` what the next such batch should take.
        """

    @abstractmethod
    def done(self, timer: PassTimer) -> bool:
        """Return whether nothing is left to do. Close what is past its deadline, or would be after one more pass."""

    @abstractmethod
    def progress(self) -> Progress:
        """Return the canvas of the first candidate."""

    @abstractmethod
    def filled(self) -> Filled:
        """Return the answer."""


class FillingJob(Job):
    """Runs fillings once the context is read, and those that follow, until none is left or the time is over."""

    def __init__(self, hole: OpenHole) -> None:
        super().__init__(hole)
        self._fillings: list[Filling] = []
        self._running: list[Filling | Following] = []
        self._rounds = 0
        self._expected_ms: float | None = None

    @property
    def unread(self) -> int:
        return self.hole.lacks if self.hole.lacks > JOINT_ROWS and not self._fillings else 0

    @property
    def _is_traced(self) -> bool:
        """Whether progress has cells."""
        return True

    @abstractmethod
    def _first(self) -> Filling:
        """Start the first filling."""

    def _begin(self) -> list[Filling]:
        """Start all that run from the first pass on."""
        return [self._first()]

    def _go_on(self) -> Sequence[Filling | Following]:
        """Start what follows, once all that ran is finished."""
        return ()

    def _unfinished(self) -> list[Filling | Following]:
        return [each for each in self._fillings if each.finish is None]

    def passes(self, encode_rows: int) -> list[Pass]:
        self.stepped = False
        if self.unread:
            return [self.hole.read(encode_rows)]
        self._fillings = self._fillings or self._begin()
        self._running = self._unfinished()
        return [filling.next_pass() for filling in self._running]

    def absorb(self, index: int, result: PassResult, elapsed_ms: float, expected_ms: float) -> None:
        hole = self.hole
        if not self._fillings:
            hole.encode_ms += elapsed_ms
            return
        begun = time.perf_counter()
        left_ms = (hole.deadline - begun) * 1000
        self._running[index].absorb(result, 1 + int(left_ms / max(expected_ms, 0.1)))
        self._expected_ms = expected_ms
        self.stepped = self.stepped or self._running[index] is self._fillings[0]
        if index == 0:  # Choosing tokens counts as well.
            self._rounds += 1
            hole.denoise_ms += elapsed_ms + (time.perf_counter() - begun) * 1000

    def done(self, timer: PassTimer) -> bool:
        expected = self._expected_ms
        if expected is None:
            expected = timer.expect(self.hole.model.info.canvas_tokens)
        late = time.perf_counter() + expected / 1000 > self.hole.deadline
        if late and not self._fillings:
            self._fillings = [self._first()]  # A hole that had no time at all is answered with an empty text.
        if not self._fillings:
            return False
        unfinished = self._unfinished()
        if late:
            for each in unfinished:
                each.close("deadline")
        over = late or not (unfinished or self._go_on())
        if over:
            self.hole.end()
        return over

    def progress(self) -> Progress:
        request_id, ms = self.hole.request.id, self.hole.ms
        if not self._fillings:
            return Progress(request_id, 0, [], ms=ms)
        first = self._fillings[0]
        return Progress(request_id, first.steps, first.canvas(), first.cells() if self._is_traced else [], ms)


class FillJob(FillingJob):
    """Writes the candidates of a fill."""

    def __init__(self, hole: OpenHole, fill: Fill, most_tokens: int | None = None, guess: str = "") -> None:
        """`most_tokens` bounds the fill further than its own max_tokens does, because many wait; the layout stays.

        guess: what is probably written.
        """
        super().__init__(hole)
        model = hole.model
        self.fill = fill
        self._most_tokens = min(fill.max_tokens, fill.max_tokens if most_tokens is None else most_tokens)
        of_rule = model.default if fill.rule == "default" else FillStrategy(fill.rule)
        crowded = self._most_tokens < fill.max_tokens
        choose_from = fill.choose_from or (1 if fill.progress or crowded else of_rule.choose_from)
        self._strategy = FillStrategy(of_rule.rule, fill.steps or of_rule.steps, choose_from)
        self._draft: Sequence[int] = ()
        if guess and self._strategy.rule == "verify" and isinstance(model, StreamModel):
            text = hole.layout.typed + guess
            tokens, ended = (model.tokenizer.encode(each, add_special_tokens=False).ids for each in (text, text + "\n"))
            # A text that was cut at the end of its line may have lost the newline that its last token has.
            self._draft = (ended if len(ended) == len(tokens) else tokens)[: self._most_tokens]
        self._memory = None if hole.memories is None else hole.memories.for_fill(fill, hole.layout)
        self._origins: list[list[Origin]] = []
        self._contexts: list[Context] = []
        """One for each filling."""
        self._branches, self._choose_from = 0, 1
        if self._strategy.rule in BRANCHING and not fill.temperature:
            if hole.layout.follows is not None:
                self._choose_from = self._strategy.choose_from
            self._branches = max(fill.candidates, self._choose_from) - 1
        self._followings: list[Following] = []

    @property
    def text(self) -> str:
        """What the first candidate has written so far."""
        return self._fillings[0].answer().text if self._fillings else ""

    @property
    def _is_traced(self) -> bool:
        return self.fill.trace

    def done(self, timer: PassTimer) -> bool:
        over = super().done(timer)
        if over and self.fill.explain and self.hole.memories is not None:
            explain = self.hole.memories.explain
            self._origins = [explain(self.fill, self.hole.layout, each.committed()) for each in self._fillings]
        return over

    def _first(self) -> Filling:
        return self._start(Sampler(others=self._branches), self.hole.context)

    def _begin(self) -> list[Filling]:
        return [self._first(), *([] if self._branches else self._drawn())]

    def _go_on(self) -> Sequence[Filling | Following]:
        if self._branches:
            started = self._branched(self._fillings[0])
            self._fillings += started
            self._branches = 0
            if started:
                return started
        if self._choose_from > 1 and not self._followings:
            self._followings = self._followed()
            return self._followings
        return ()

    def _unfinished(self) -> list[Filling | Following]:
        return [*super()._unfinished(), *(each for each in self._followings if each.finish is None)]

    def _drawn(self) -> list[Filling]:
        fill = self.fill
        temperature = fill.temperature or TEMPERATURE
        samplers = [Sampler(temperature, fill.top_p, fill.seed + number) for number in range(1, fill.candidates)]
        return [self._start(sampler, self.hole.fork()) for sampler in samplers]

    def _branched(self, greedy: Filling) -> list[Filling]:
        """Start the candidates that deviate from the greedy one, each by the token that is likeliest after the same
        ones, and go on greedily; drawn ones for a model that keeps no less likely tokens."""
        branches: list[Branch] = greedy.branches(self._branches)
        least, asked = LEAST_SHARE * math.exp(likelihood(greedy.answer())), self.fill.candidates - 1
        if self.fill.extent == "line":
            least = max(least, self.fill.min_line_probability)
        branches = [branch for at, branch in enumerate(branches) if at < asked or branch.probability >= least]
        samplers = [Sampler(others=self._branches, branch=branch) for branch in branches]
        return [self._start(sampler, self.hole.fork()) for sampler in samplers] or self._drawn()

    def _followed(self) -> list[Following]:
        """Return the passes that look at what follows each text; none where there is nothing to choose."""
        layout, followings = self.hole.layout, dict[str, Following]()
        for filling, context in zip(self._fillings, self._contexts, strict=True):
            answer = filling.answer()
            if not layout.follows or not is_whole(answer):
                continue
            ends = [len(layout.typed) + len(answer.text)]
            if layout.resumes is not None and self.fill.extent == "lines":
                lines = filling.line_ends()[:MOST_ENDS]
                ends = lines + (ends if answer.finish == "complete" or not lines else [])
            followings[answer.text] = Following(self.hole.model, context, layout, filling, ends)
        several = len(followings) > 1 or any(len(each.ends) > 1 for each in followings.values())
        return list(followings.values()) if several else []

    def _start(self, sampler: Sampler, context: Context) -> Filling:
        self._contexts.append(context)
        task = FillTask(
            context,
            self.hole.layout,
            Bounds(self.fill.extent, self._most_tokens, self.fill.min_line_probability),
            sampler,
            self._strategy,
            self._memory,
            self._draft if sampler.branch is None else sampler.branch.tokens,
        )
        return self.hole.model.start_fill(task)

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
        steps = self._rounds if self._choose_from > 1 else self._fillings[0].steps if self._fillings else 0
        candidates = list(distinct.values())[: self.fill.candidates]
        return self.hole.answer(candidates, steps, self._strategy.rule, self._choose_from)
