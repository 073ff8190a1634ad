"""Rows that the mixing network of the memory learns from: holes cut into packages, each package a workspace.

The file with the hole is left out of the workspace. The model does not change, so its predictions are computed once.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from engine.corpus.languages import MARKUP, File
from engine.fill.sampler import NEVER, keep_only
from engine.fill.stream import StreamPass
from engine.memory.followers import GROUPS_A_ROW, RUN_LENGTHS
from engine.memory.mixing_network import Statistics, counts_of
from engine.memory.row_memory import (
    FILE_SCOPE,
    FILE_WORDS,
    SCOPES,
    WORD_SCOPE,
    FileScan,
    KnownFiles,
    RowFollowers,
    followers_of_rows,
)
from engine.models.embedded.layout import LineEncoder, lay_out, unfinished
from engine.models.embedded.model import EmbeddedModel
from engine.models.stock.token_bytes import TokenBytes
from engine.protocol.messages import Snippet
from engine.training.related import Related, line_texts_of

HOLES_A_FILE = 4
FILES_A_PACKAGE = 12
MOST_CHARACTERS = 2_000_000
"""Characters of a package; later files are left out."""
PREFIX_ROWS = 100
"""Rows above the cursor that are learned from, the last ones: they cost little beside reading the context."""
RELATED_SHARE = 0.7
"""The share of holes with related code. A first file of a new workspace has none."""
SHORT_SHARE = 0.2
"""The share of holes in short files without a workspace. There the model has read all that the memory knows."""
SHORT_ABOVE, SHORT_BELOW = 2_400, 800
"""Characters of a short file above and below its hole, at most."""
BEGUN_SHARE = 0.4
"""The share of these rows whose token counts as begun."""
FEWEST_TOKENS = 300
MIDDLE_TOKENS = 32
"""The most of a hole."""


@attrs.frozen(eq=False)
class Rows:
    """Rows with a known next token, the target; n of them.

    statistics: of the followers. first, highest, of_tops: see Statistics.features.
    target: fp32 [n], the model's probability of the target. target_counts: fp32 [n, SCOPES, runs], the target's counts.
    """

    statistics: Statistics
    first: NDArray[np.int64]
    highest: NDArray[np.float32]
    of_tops: NDArray[np.float32]
    target: NDArray[np.float32]
    target_counts: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of all parts."""
        columns = ([getattr(part, field.name) for part in parts] for field in attrs.fields(cls)[1:])
        inner = ([getattr(part.statistics, field.name) for part in parts] for field in attrs.fields(Statistics))
        return cls(Statistics(*map(np.concatenate, inner)), *map(np.concatenate, columns))

    def only(self, scope: int) -> "Rows":
        """Return the rows as they would be if only one scope were known."""
        statistics = self.statistics
        known = np.zeros((SCOPES, GROUPS_A_ROW), bool)
        known[scope] = True
        if scope == FILE_SCOPE:
            known[WORD_SCOPE, FILE_WORDS] = True
        totals = statistics.totals * known
        # The top is of the longest run, so it changes only where no run is left.
        left = totals.any(-1)
        changed = Statistics(
            totals=totals,
            kinds=statistics.kinds * known,
            top_counts=statistics.top_counts * known,
            tops=np.where(left, statistics.tops, -1),
            newest=statistics.newest & left,
            longest=statistics.longest * left,
        )
        return attrs.evolve(self, statistics=changed, target_counts=self.target_counts * known)

    def features(self) -> NDArray[np.float32]:
        return self.statistics.features(self.first, self.highest, self.of_tops)


@attrs.frozen(eq=False)
class HoleRows:
    """Rows above and in one hole: their followers, the model's probabilities [n, vocabulary], and the next tokens."""

    followers: RowFollowers
    probabilities: NDArray[np.float32]
    targets: NDArray[np.int64]


class HoleReader:
    """Cuts holes into the files of a workspace and runs the model over them, laid out as the engine does."""

    def __init__(self, model: EmbeddedModel, seed: int, short_share: float = SHORT_SHARE) -> None:
        self._model, self._rng, self._short_share = model, random.Random(seed), short_share
        token_bytes = TokenBytes(model.tokenizer)
        self._encode, self._lines = LineEncoder(model.tokenizer, token_bytes), line_texts_of(token_bytes)
        self._never = [token for token in attrs.astuple(model.card.marks) if token != model.end]

    def read(self, files: Sequence[File], most_files: int = FILES_A_PACKAGE) -> Iterator[HoleRows]:
        """Yield holes of random files of a workspace."""
        known, room = KnownFiles(), MOST_CHARACTERS
        fit: list[File] = []
        for file in files:
            room -= len(file.text)
            if room < 0:
                break
            tokens = self._encode(file.text)
            known.add(file.path, np.array(tokens, np.int32))
            if len(tokens) >= FEWEST_TOKENS and file.language not in MARKUP:
                fit.append(file)
        related = Related(known, self._encode, self._lines)
        for file in self._rng.sample(fit, min(most_files, len(fit))):
            for _ in range(HOLES_A_FILE):
                start = self._rng.randrange(len(file.text) // 8, len(file.text))
                if self._rng.random() < self._short_share:
                    yield self._hole(KnownFiles(), None, *self._shortened(file, start))
                else:
                    yield self._hole(known, related, file, start)

    def _hole(self, known: KnownFiles, related: Related | None, file: File, start: int) -> HoleRows:
        """Cut the rest of a line, or up to three lines. Without `related` no related code is read."""
        rng, marks, card = self._rng, self._model.card.marks, self._model.card
        stop = start
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            stop = file.text.find("\n", stop + 1)
            stop = len(file.text) if stop < 0 else stop
        typed = unfinished(self._model.tokenizer, file.text[:start])
        start -= len(typed)
        prefix, suffix = file.text[:start], file.text[stop:]
        above, middle = self._encode(prefix), self._encode(file.text[start:stop])
        middle = [*middle, marks.end][:MIDDLE_TOKENS]
        snippets = list[Snippet]()
        if related is not None and card.related_tokens > 0 and rng.random() < RELATED_SHARE:
            snippets = related.of(prefix, suffix, file.path)
        limits = card.limits(MIDDLE_TOKENS, snippets)
        layout = lay_out(self._encode, marks, limits, prefix, suffix, file.path, snippets, card.anchor)
        stream = [*layout.tokens, layout.anchor, *middle[:-1]]
        # A row of the prefix predicts the next token of the prefix; the last row of it predicts none.
        rows = min(PREFIX_ROWS, max(0, layout.near.stop - layout.near.start - 1))
        prefix_rows = range(layout.near.stop - 1 - rows, layout.near.stop - 1)
        middle_rows = range(len(layout.tokens), len(stream))
        ends = [*range(len(above) - rows, len(above)), *[len(above)] * len(middle_rows)]
        histories = [above[max(0, end - RUN_LENGTHS[-1]) : end] for end in ends[:rows]]
        histories += [[*above[-RUN_LENGTHS[-1] :], *middle[:count]] for count in range(len(middle_rows))]
        targets = [*above[len(above) - rows :], *middle]
        compatible = self._compatible(targets, rows, typed)
        scan = FileScan(above, self._encode(suffix))
        followers = followers_of_rows(scan, known.index, known.numbers.get(file.path), histories, compatible, ends)
        wanted = [*prefix_rows, *middle_rows]
        logits = self._model.logits([StreamPass(self._model.new_context(), stream, [], wanted)])[0]
        logits[:, self._never] = NEVER
        for row, tokens in compatible.items():
            keep_only(logits[row], tokens)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        return HoleRows(followers, shares / shares.sum(-1, keepdims=True), np.array(targets))

    def _shortened(self, file: File, start: int) -> tuple[File, int]:
        """Return whole lines around `start` as a file of their own, and where `start` is in it."""
        first = file.text.rfind("\n", 0, max(0, start - self._rng.randrange(SHORT_ABOVE))) + 1
        stop = file.text.find("\n", start + self._rng.randrange(SHORT_BELOW)) + 1
        return attrs.evolve(file, text=file.text[first : stop or None]), start - first

    def _compatible(self, targets: list[int], prefix_rows: int, typed: str) -> dict[int, list[int]]:
        """Return the tokens that begun rows may have: those of the typed text, and some of the prefix.

        A user sees a suggestion most often in the middle of a word, and a hole has only one such row.
        """
        compatible, unwritten = dict[int, list[int]](), typed.encode()
        for row, target in enumerate(targets):
            text = self._model.bytes_of(target)
            if row < prefix_rows and len(text) > 1 and self._rng.random() < BEGUN_SHARE:
                compatible[row] = self._model.compatible_tokens(text[: self._rng.randrange(1, len(text))])
            elif row >= prefix_rows and unwritten:
                compatible[row] = self._model.compatible_tokens(unwritten)
                unwritten = unwritten[len(text) :]
        return compatible


def rows_of(hole: HoleRows) -> Rows:
    """Return what the mixing network learns from a hole."""
    statistics, first = Statistics.of(hole.followers.joined), hole.probabilities.argmax(1)
    numbers = np.arange(len(first))
    target_counts = np.stack([counts_of(counts, hole.targets) for counts in hole.followers.scopes], 1)
    return Rows(
        statistics=statistics,
        first=first,
        highest=hole.probabilities[numbers, first],
        of_tops=hole.probabilities[numbers[:, None], statistics.tops],
        target=hole.probabilities[numbers, hole.targets],
        target_counts=target_counts,
    )


def collect(reader: HoleReader, workspaces: Iterable[Sequence[File]], minutes: float) -> Rows:
    """Return the rows of random holes in each workspace, until `minutes` are over."""
    parts: list[Rows] = []
    started = time.monotonic()
    for files in workspaces:
        parts += map(rows_of, reader.read(files))
        if time.monotonic() - started > 60 * minutes:
            break
    return Rows.joined(parts)
