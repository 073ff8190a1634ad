"""The settings of a section of the GPU benchmark, and how it prints a figure."""

import json
from typing import get_args

import attrs
import torch

from benchmarks.gpu.gpu_floor import Speeds
from engine.library.precision_names import Precision


@attrs.frozen
class Run:
    """One section's run: on the full shapes or on tiny ones."""

    device: torch.device
    full: bool
    precision: Precision
    model: str
    """The embedded model: a name or a folder."""

    @classmethod
    def of(cls, full: bool, precision: str, model: str) -> "Run":
        """Use the GPU if there is one; without one "auto" means fp32."""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        automatic: Precision = "bf16" if device.type == "cuda" else "fp32"
        chosen = next((known for known in get_args(Precision) if known == precision), automatic)
        return cls(device, full, chosen, model)

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu"

    def speeds(self) -> Speeds:
        return Speeds.of(self.device)


@attrs.frozen
class Figure:
    """A figure in ms next to its floor in ms, or next to the time of the code that it should beat."""

    name: str
    ms: float
    floor_ms: float | None = None
    other_ms: float | None = None
    note: str = ""

    def show(self, run: Run) -> None:
        """Print one JSON line."""
        line = {
            "figure": self.name,
            "ms": round(self.ms, 3),
            "floor_ms": None if self.floor_ms is None else round(self.floor_ms, 3),
            "times_floor": None if not self.floor_ms else round(self.ms / self.floor_ms, 2),
            "other_ms": None if self.other_ms is None else round(self.other_ms, 3),
            "times_faster": None if self.other_ms is None else round(self.other_ms / self.ms, 2),
            "note": self.note,
            "device": run.device_name,
            "precision": run.precision,
            "full": run.full,
        }
        print(json.dumps({key: value for key, value in line.items() if value not in (None, "")}), flush=True)
