"""A left-to-right model that others trained, in our kernel, with verified drafts from the workspace's memory."""

import threading
from collections.abc import Callable, Sequence

import attrs
from tokenizers import Tokenizer

from engine.errors import ModelError
from engine.fill.draft_planner import DraftPlanner
from engine.fill.follows import FOLLOWS
from engine.fill.interface import Context, Filling, FillTask, Layout, MemoryUse, Pass, expect_type
from engine.fill.lines import Below
from engine.fill.rewriting import RewriteLayout, Rewriting
from engine.fill.sampler import PassResult
from engine.fill.strategies import DEFAULT, start_stream_fill
from engine.fill.stream import CanvasUse, StreamPass
from engine.models.edit_formats import EDIT_FORMATS, EditPrompt, Mark
from engine.models.embedded.adapter import AdapterKey
from engine.models.embedded.layout import LONGEST
from engine.models.embedded.runner import Runner
from engine.models.embedded.shape import Shape
from engine.models.left_to_right.base import LeftToRightBase
from engine.models.left_to_right.fim import Specials
from engine.models.left_to_right.prompt import FimPrompt
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Fill, HoleRequest, ModelInfo, left_edge
from engine.protocol.rewrite import Rewrite

FAMILY = "left-to-right"
_WINDOW = 256
"""Characters before the cursor in which its last piece is looked for."""
_LEAST_NEW = 32
"""A rewrite has room for so many tokens more than the region has."""
CANVAS_RIGHT = 0.5
"""draft_planner.RIGHT of an adapter's canvases: a young adapter guesses every second first token."""


class LeftToRightModel(LeftToRightBase):
    """Implements fill.stream.StreamModel. It has canvases, and a mask, if an adapter came with it.

    A model with tokens for filling in the middle reads the suffix before <middle>. Any other reads what is above alone,
    and what is below helps through the memory. The memory drafts and is mixed in, and the text is that of left to
    right. The mixing network is the embedded model's unless `midspan models tune` has fitted another. On files of 2025
    it made 1.181 nats a token of Qwen2.5-Coder 0.5B 0.789, and one that was fitted to these files 0.765.
    """

    def __init__(
        self,
        info: ModelInfo,
        runner: Runner,
        tokenizer: Tokenizer,
        token_bytes: TokenBytes,
        specials: Specials,
        threads: int,
        shape: Shape,
        canvas_tokens: int = 0,
        keep: Callable[[], None] | None = None,
        adapter_key: AdapterKey | None = None,
    ) -> None:
        """canvas_tokens: of the canvases that an adapter drafts with. No fill is denoised: it was not trained for that.

        keep: what `keep` shall do, once. adapter_key: where torch runs it, or an adapter came with it.
        """
        self._edits = next((row for row in EDIT_FORMATS if row.name == info.edits), None)
        super().__init__(info, tokenizer, token_bytes, specials.ends, threads)
        self.runner = runner
        self.specials, self._capacity, self._keep = specials, shape.positions, keep
        self.adapter_key = adapter_key
        # An adapter's mask comes after the tokens. Without one warm-up alone asks for a mask, and any token will do.
        self.mask = shape.vocabulary if canvas_tokens else self.end
        self.default, self.canvas_use = DEFAULT, CanvasUse()
        self.canvas_tokens, self.drafts = canvas_tokens, DraftPlanner(canvas_tokens, right=CANVAS_RIGHT)
        self.memory_use: MemoryUse = "mixture" if specials.fim is None else "both"
        # 150,000 tokens are sorted while the warm-up's passes run, which need no interpreter.
        threading.Thread(target=lambda: self._compatible, daemon=True).start()
        self._prompt = (
            None
            if specials.fim is None
            else FimPrompt(self._encode, token_bytes.breaks_line, specials.fim, info.reading_tokens)
        )

    def lay_out(self, request: HoleRequest) -> Layout:
        if isinstance(request, Fill):
            self._check(request.rule)  # A strategy that this model does not have is refused before anything is read.
        if request.rewrite is not None:
            return self._lay_out_rewrite(request, request.rewrite)
        prefix = request.prefix.replace("\r\n", "\n")
        typed = unfinished(self.tokenizer, prefix)
        above = prefix[: len(prefix) - len(typed)]
        if self._prompt is not None:
            laid = self._prompt.lay_out(attrs.evolve(request, prefix=prefix), typed)
            begin = [] if self.specials.begin is None else [self.specials.begin]
            return attrs.evolve(laid, context=[*begin, *laid.context])
        room = self.info.reading_tokens - min(request.max_tokens, self.info.reading_tokens // 2) - 2
        known, below = self._encode(above), self._encode(request.suffix.replace("\r\n", "\n"))
        tokens = known[left_edge(len(known), room, room // 4) :]
        first = [self.end if self.specials.begin is None else self.specials.begin]
        context = tokens if tokens and self.specials.begin is None else [*first, *tokens]
        follows = None if request.suffix.partition("\n")[0].strip() else below[:FOLLOWS]
        return Layout(
            context[:-1],
            typed=typed,
            above=known,
            below=below,
            anchor=context[-1],
            follows=follows,
            resumes=Below.of(prefix, request.suffix.replace("\r\n", "\n"), request.language),
        )

    def _lay_out_rewrite(self, request: HoleRequest, rewrite: Rewrite) -> RewriteLayout:
        row = self._edits
        if row is None:
            raise ModelError(f"{self.info.name} was not made to predict edits")
        asked = EditPrompt(
            request.path,
            request.prefix,
            rewrite.region,
            request.suffix,
            rewrite.cursor,
            rewrite.kept,
            rewrite.edits,
            [(one.path, one.text) for one in request.snippets],
            rewrite.reports,
        )
        if row.is_ambiguous(asked):
            raise ModelError(f"the text has a mark of the format {row.name}")
        asked = row.without_marks(asked)
        tokens = [] if self.specials.begin is None else [self.specials.begin]
        for piece in row.prompt(asked):
            tokens += self._mark(piece) if isinstance(piece, Mark) else self._encode_alone(piece)
        unchanged = self._encode_alone(row.unchanged(asked))
        if len(tokens) + len(unchanged) + _LEAST_NEW > self.info.context_tokens:
            raise ModelError(f"the region and what is around it have more tokens than {self.info.name} reads")
        return RewriteLayout(
            context=tokens[:-1],
            anchor=tokens[-1],
            region=rewrite.region,
            kept=asked.head,
            unchanged=unchanged,
            stop=row.stop,
            read=lambda answer: row.read(asked, answer),
        )

    def _mark(self, mark: Mark) -> list[int]:
        token = self.tokenizer.token_to_id(mark.token)
        return [] if token is None else [token]

    def new_context(self) -> Context:
        return self.runner.new_context()

    def start_fill(self, task: FillTask) -> Filling:
        self._check(task.strategy.rule)
        # What follows may be looked at after the fill, and a canvas comes after its last token.
        beyond = max(FOLLOWS, self.canvas_tokens)
        task = task.within(self._capacity - len(task.layout.context) - 2 - beyond)
        if isinstance(task.layout, RewriteLayout):
            return Rewriting(self, task, task.layout)
        return start_stream_fill(self, task)

    def run(self, passes: Sequence[Pass]) -> list[PassResult]:
        own = [expect_type(item, StreamPass) for item in passes]
        for item in own:
            if (needed := len(item.context.tokens) + item.rows) > self._capacity:
                raise ModelError(f"a hole needs {needed} positions; the model has {self._capacity}")
        predicted = self.runner.predict(own)
        for item in own:
            item.context.tokens += item.append
        return [PassResult(self._with_one_end(each)) for each in predicted]

    def keep(self) -> None:
        """Implements fill.interface.Keeps."""
        keep, self._keep = self._keep, None
        if keep is not None:
            keep()


def unfinished(tokenizer: Tokenizer, prefix: str) -> str:
    """Return the end of a prefix that the next token may begin with: its last piece, or "".

    See embedded/layout.py. Here a piece may hold a newline with what is around it. Such a piece is finished, but
    for a last space: a word's token has the space before it.
    """
    window = prefix[-_WINDOW:]
    if not window or tokenizer.pre_tokenizer is None:
        return ""
    piece = window[tokenizer.pre_tokenizer.pre_tokenize_str(window)[-1][1][0] :]
    if "\n" in piece:
        return " " if piece.endswith(" ") else ""
    return "" if len(piece) > LONGEST else piece
