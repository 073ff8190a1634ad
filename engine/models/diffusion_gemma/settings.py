"""What a checkpoint says of its sampler: generation_config.json, or what the released one has."""

import json
from pathlib import Path
from typing import Any

import attrs

from engine.errors import ModelError


@attrs.frozen
class SamplerSettings:
    """`entropy_bound` and `confident` are in nats; the temperature falls from `hottest` to `coolest`; a canvas has
    `most_steps`; `ends` are the tokens that end a text."""

    ends: tuple[int, ...]
    entropy_bound: float = 0.1
    confident: float = 0.005
    hottest: float = 0.8
    coolest: float = 0.4
    most_steps: int = 48

    def temperature(self, left: int, steps: int, hottest: float) -> float:
        """Return the temperature of a step when `left` of `steps` are left, itself among them; the schedule starts at
        `hottest` and falls by the same share as the checkpoint's own."""
        coolest = hottest * self.coolest / self.hottest
        return coolest + (hottest - coolest) * left / steps


def read_settings(folder: Path, ends: object) -> SamplerSettings:
    """Read a checkpoint's settings; `ends` is config.json's eos_token_id. Raises ModelError for nonsense."""
    path = folder / "generation_config.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        sampler = found.get("sampler_config") or {}
        known = {
            "entropy_bound": sampler.get("entropy_bound"),
            "confident": found.get("confidence_threshold"),
            "hottest": found.get("t_max"),
            "coolest": found.get("t_min"),
        }
        numbers = {name: float(value) for name, value in known.items() if value is not None}
        stated = found.get("eos_token_id", ends)
        tokens = tuple(int(token) for token in (stated if isinstance(stated, list) else [stated]))
        return SamplerSettings(tokens, **numbers, most_steps=int(found.get("max_denoising_steps") or 48))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be read: {error}; install the model again") from None
