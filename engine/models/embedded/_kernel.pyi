from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.runner import Taken

def paths() -> list[str]: ...

class Network:
    def __init__(
        self,
        path: str,
        threads: int,
        epsilon: float,
        sizes: Sequence[int],
        arrays: Sequence[Taken],
    ) -> None: ...
    def adapt(self, arrays: Sequence[Taken]) -> None: ...
    def packed(self, number: int, start: int, buffer: memoryview) -> int: ...
    def run(
        self,
        numbers: NDArray[np.int64],
        holes: list[tuple[int, int, int, list[NDArray[np.float16] | NDArray[np.float32]]]],
        wanted: NDArray[np.int64],
        logits: NDArray[np.float32],
    ) -> None: ...
