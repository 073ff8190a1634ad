"""What runs the embedded model's passes: the kernel or NumPy (host_runner.py), or torch (torch_runner.py)."""

from collections.abc import Sequence
from typing import Protocol

from engine.fill.interface import Context
from engine.fill.predictions import Predictions, Query
from engine.fill.stream import StreamPass
from engine.models.embedded.rows import PackedRows
from engine.models.embedded.shape import Floats


class Ran(Protocol):
    """What the network made of a batch, for the wanted rows of all passes, one after the other."""

    def logits(self) -> Floats:
        """Return fp32 logits [wanted, vocabulary], those that `predict` left where it has run."""
        ...

    def predict(self, queries: Sequence[Query], counts: Sequence[int]) -> list[Predictions]:
        """Return one Predictions for each query, which is about `counts` rows. Overwrites the logits."""
        ...


class Runner(Protocol):
    """Runs passes of one loaded network."""

    device: str
    """"cpu" or "cuda"."""
    dtype: str
    """What it computes in, for people."""
    draft_rows: int
    """See fill.stream.StreamModel."""

    def new_context(self) -> Context:
        """Return an empty context."""
        ...

    def run(self, passes: Sequence[StreamPass], packed: PackedRows) -> Ran:
        """Run passes together and write the keys and values of their rows. Does not change the contexts' tokens."""
        ...
