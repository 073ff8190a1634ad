"""How much the memory is believed: the weights of a mixture, from a network with one hidden layer, and its input."""

import hashlib
import os
from pathlib import Path
from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from engine.errors import ModelError
from engine.folders import models_folder
from engine.library.resolve import EMBEDDED_FOLDER
from engine.memory.followers import GROUPS_A_ROW, PLACE_BITS, RUN_LENGTHS, FollowerCounts
from engine.memory.row_memory import SCOPES
from engine.whole_files import make_folder

MIXING_FILE = "memory.safetensors"
"""The name of a mixing network's file in the folder of the weights that it was trained for."""
_BESIDE = ".memory.safetensors"
"""What comes after the name of a GGUF."""
HIDDEN = 32
_NEVER = np.float32(-1e9)
FEATURES = 3 + SCOPES * (9 + 2 * GROUPS_A_ROW) + 1
"""Numbers for each row."""
_LENGTHS = np.array(RUN_LENGTHS)
_ORDER = np.arange(1, GROUPS_A_ROW + 1)
_LEAST = 1e-6

Floats = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)


@attrs.frozen(eq=False)
class Statistics:
    """Counts for n rows, the scopes of RowFollowers and the runs of RUN_LENGTHS; zeros where a run is not known.

    totals, kinds, top_counts: fp32 [n, scopes, 6]: occurrences, different followers, occurrences of the scope's top.
    tops: int64 [n, scopes], the most frequent follower of the longest run; -1 without followers.
    newest: bool [n, scopes], whether that is also the follower of the latest occurrence.
    longest: fp32 [n, scopes], the length of the longest run.
    """

    totals: Floats
    kinds: Floats
    top_counts: Floats
    tops: NDArray[np.int64]
    newest: NDArray[np.bool_]
    longest: Floats

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which scopes have followers, [n, scopes]."""
        return self.tops >= 0

    @classmethod
    def of(cls, counts: FollowerCounts) -> "Statistics":
        """Return the statistics of rows whose scopes are joined (RowFollowers.joined)."""
        cells = counts.rows * GROUPS_A_ROW
        totals = np.bincount(counts.groups, counts.counts, minlength=cells).astype(np.float32).reshape(-1, GROUPS_A_ROW)
        kinds = np.bincount(counts.groups, minlength=cells).astype(np.float32).reshape(-1, GROUPS_A_ROW)
        longest = _longest_rank(totals)
        tops, newest = _tops(counts, longest)
        lengths = np.where(totals.any(1), _LENGTHS[longest], 0).astype(np.float32)
        return cls(
            totals=_by_scope(totals),
            kinds=_by_scope(kinds),
            top_counts=_by_scope(counts_of(counts, tops)),
            tops=_by_scope(tops),
            newest=_by_scope(newest),
            longest=_by_scope(lengths),
        )

    def features(self, first: NDArray[np.int64], highest: Floats, of_tops: Floats) -> Floats:
        """Return the network's input [n, FEATURES].

        first: the model's most likely token of each row. highest: its probability.
        of_tops: fp32 [n, scopes], the model's probabilities of `tops`; anything where there is none.

        Features divided by 3, 4 or 5 have a large range. Training scales each one by its spread, of at least 0.05, so
        other numbers would do as well; but these are in the weights, which would have to be trained again.
        """
        here = self.present
        longest = _longest_rank(self.totals)[:, :, None]
        totals = np.take_along_axis(self.totals, longest, 2)[:, :, 0]
        kinds = np.take_along_axis(self.kinds, longest, 2)[:, :, 0]
        tops = np.take_along_axis(self.top_counts, longest, 2)[:, :, 0]
        shares = self.top_counts / np.maximum(self.totals, 1)
        scopes = [
            here,
            self.longest / 4,
            np.log2(np.maximum(totals, 1)) / 3,
            tops / np.maximum(totals, 1),
            np.log2(np.maximum(kinds, 1)) / 3,
            of_tops * here,
            np.log(np.maximum(of_tops, _LEAST)) / 5 * here,
            self.tops == first[:, None],
            self.newest,
        ]
        model = np.stack(
            (highest, np.log(np.maximum(highest, _LEAST)) / 3, np.log1p(-np.minimum(highest, 0.999)) / 5), 1
        )
        same = here[:, :2].all(1) & (self.tops[:, 0] == self.tops[:, 1])
        parts = [model, *scopes, (np.log2(self.totals + 1) / 3).reshape(len(first), -1)]
        parts += [shares.reshape(len(first), -1), same[:, None]]
        return np.concatenate(parts, axis=1, dtype=np.float32)


def counts_of(counts: FollowerCounts, tokens: NDArray[np.int64]) -> Floats:
    """Return how often a token of each row followed each run, fp32 [n, 6]. tokens: [n]."""
    table = np.zeros(counts.rows * GROUPS_A_ROW, np.float32)
    (same,) = (counts.tokens == tokens[counts.groups // GROUPS_A_ROW]).nonzero()
    table[counts.groups[same]] = counts.counts[same]
    return table.reshape(-1, GROUPS_A_ROW)


def _by_scope(column: NDArray[Number]) -> NDArray[Number]:
    """Return a column [scopes * n, ...] of joined scopes as [n, scopes, ...]."""
    return column.reshape(SCOPES, -1, *column.shape[1:]).swapaxes(0, 1)


def _tops(counts: FollowerCounts, longest: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each row the most frequent follower of its longest run, and whether it is the newest as well.

    longest: int64 [n], the rank of the longest run. The newer one of equally frequent followers is taken.
    """
    tops, newest = np.full(counts.rows, -1), np.zeros(counts.rows, np.bool_)
    (entries,) = (counts.groups % GROUPS_A_ROW == longest[counts.groups // GROUPS_A_ROW]).nonzero()
    if not len(entries):
        return tops, newest
    rows, places = counts.groups[entries] // GROUPS_A_ROW, counts.places[entries]
    starts = np.concatenate(([0], (rows[1:] != rows[:-1]).nonzero()[0] + 1))
    scores = (counts.counts[entries] << PLACE_BITS) | places
    best = np.maximum.reduceat(scores, starts)
    tops_of = (scores == best.repeat(np.append(starts[1:], len(rows)) - starts)).nonzero()[0]
    tops[rows[starts]] = counts.tokens[entries[tops_of]]
    newest[rows[starts]] = np.maximum.reduceat(places, starts) == places[tops_of]
    return tops, newest


def _longest_rank(totals: Floats) -> NDArray[np.int64]:
    """Return the rank of the longest run that occurs, for totals [..., 6]; 0 where none does."""
    return np.asarray((_ORDER * (totals > 0)).argmax(-1), np.int64)


def own_mixing_of(path: Path) -> Path | None:
    """Return where the model at `path`, a folder or a GGUF, has a mixing network of its own; None if it has none."""
    return own_file(path, MIXING_FILE, _BESIDE)


def new_mixing_of(path: Path) -> Path:
    """Return where to write a model's own mixing network."""
    return own_place(path, MIXING_FILE, _BESIDE)


def own_file(path: Path, in_folder: str, beside: str) -> Path | None:
    """Return what we keep for the model at `path`; None if there is none.

    in_folder: its name in the model's folder. beside: what is added to a GGUF's name.
    """
    return next((each for each in _places_of(path, in_folder, beside) if each.is_file()), None)


def own_place(path: Path, in_folder: str, beside: str) -> Path:
    """Return where to keep it: beside the model, or else, where one may not, among the models."""
    near, other = _places_of(path, in_folder, beside)
    if os.access(near.parent, os.W_OK):
        return near
    make_folder(other.parent)
    return other


def _places_of(path: Path, in_folder: str, beside: str) -> tuple[Path, Path]:
    near = path / in_folder if path.is_dir() else path.with_name(path.name + beside)
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return near, models_folder() / ".memory" / f"{name}{Path(in_folder).suffix}"


@attrs.frozen(eq=False)
class MixingNetwork:
    """Weights of the model and of each scope, and of the runs within a scope.

    hidden: fp32 [FEATURES, HIDDEN], hidden_bias [HIDDEN], output [HIDDEN, 1 + SCOPES], output_bias [1 + SCOPES].
    back_off: fp32 [SCOPES, runs, 2]. A run that occurred `total` times, with `kinds` different followers, leaves the
    shorter runs the share s / (total + s), s = back_off[0] * kinds + back_off[1] (1 and 0 in Witten and Bell, 1991).
    """

    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: Floats
    back_off: Floats

    @classmethod
    def load(cls, path: Path) -> "MixingNetwork":
        """Read a mixing network. Raises ModelError if the file is none, or of another shape."""
        shapes = {
            "hidden": (FEATURES, HIDDEN),
            "hidden_bias": (HIDDEN,),
            "output": (HIDDEN, 1 + SCOPES),
            "output_bias": (1 + SCOPES,),
            "back_off": (SCOPES, len(RUN_LENGTHS), 2),
        }
        try:
            tensors = load_file(path)
        except Exception as error:  # safetensors has its own type, and OSError
            raise ModelError(f"{path} cannot be read as a mixing network: {error}") from None
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ModelError(f"{path} is a mixing network of another version; run `midspan train memory`")
        if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in tensors.values()):
            raise ModelError(f"{path} has numbers that are none, or not in fp32; get the model again")
        return cls(**tensors)

    @classmethod
    def shipped(cls) -> "MixingNetwork":
        """Read the network of the embedded model. Raises ModelError."""
        return cls.load(EMBEDDED_FOLDER / MIXING_FILE)

    @classmethod
    def of_model(cls, path: Path) -> "MixingNetwork":
        """Read the network of the model at `path`; without one, that of the embedded model. Raises ModelError."""
        own = own_mixing_of(path)
        return cls.shipped() if own is None else cls.load(own)

    @classmethod
    def without(cls) -> "MixingNetwork":
        """Return the network of a model that predicts better alone: it gives the model all the weight."""
        bias = np.full(1 + SCOPES, _NEVER)
        bias[0] = 0
        nothing = np.zeros((FEATURES, HIDDEN), np.float32), np.zeros(HIDDEN, np.float32)
        return cls(*nothing, np.zeros((HIDDEN, 1 + SCOPES), np.float32), bias, np.ones_like(cls.shipped().back_off))

    @property
    def is_off(self) -> bool:
        """Whether it gives the model all the weight."""
        return bool((self.output_bias[1:] <= _NEVER).all())

    def save(self, path: Path) -> None:
        """Write the mixing network as safetensors."""
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in attrs.asdict(self).items()}, path)

    def weights(self, features: Floats, present: NDArray[np.bool_]) -> Floats:
        """Return the mixture weights [n, 1 + SCOPES] of the model and of each scope; they sum to 1.

        features: [n, FEATURES]. present: [n, SCOPES], the scopes that have followers; others get 0.
        """
        hidden = np.maximum(features @ self.hidden + self.hidden_bias, 0)
        scores = hidden @ self.output + self.output_bias
        scores[:, 1:] = np.where(present, scores[:, 1:], _NEVER)
        scores -= scores.max(1, keepdims=True)
        shares: Floats = np.exp(scores)
        shares /= shares.sum(1, keepdims=True)
        return shares

    def run_weights(self, statistics: Statistics) -> Floats:
        """Return the weights [n, SCOPES, runs] of the runs within each scope; of a scope with followers they sum to 1.

        The longest run comes first. What it leaves goes to the next shorter one.
        """
        strength = statistics.kinds * self.back_off[..., 0] + self.back_off[..., 1]
        occurs = statistics.totals > 0
        kept = np.where(occurs, statistics.totals / np.maximum(statistics.totals + strength, 1e-9), 0)
        left = np.cumprod(1 - kept[..., ::-1], axis=-1)[..., ::-1]
        weights: Floats = kept.copy()
        weights[..., :-1] *= left[..., 1:]
        weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-9)
        return weights
