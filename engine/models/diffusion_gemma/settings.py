"""The sampler settings in a checkpoint's generation_config.json. Missing ones are those of the released checkpoint."""

from pathlib import Path
from typing import Any

import attrs

from engine.errors import ModelError
from engine.json_file import read_json


@attrs.frozen
class SamplerSettings:
    """How canvases are denoised.

    ends: the tokens that end a text
    entropy_bound: in nats, for by_entropy
    confident: in nats; a stable canvas with a lower mean entropy is done
    hottest, coolest: the temperature falls from one to the other
    most_steps: of one canvas
    """

    ends: tuple[int, ...]
    entropy_bound: float = 0.1
    confident: float = 0.005
    hottest: float = 0.8
    coolest: float = 0.4
    most_steps: int = 48

    def temperature(self, left: int, steps: int, hottest: float) -> float:
        """Return the temperature of a step when `left` of `steps` remain, including this one.

        The schedule starts at `hottest` and falls by the same share as the checkpoint's own.
        """
        coolest = hottest * self.coolest / self.hottest
        return coolest + (hottest - coolest) * left / steps


def read_settings(folder: Path, ends: object) -> SamplerSettings:
    """Read a checkpoint's settings. `ends` is eos_token_id in config.json. Raises ModelError for invalid values."""
    path = folder / "generation_config.json"
    try:
        content: dict[str, Any] = read_json(path) if path.exists() else {}
        sampler = content.get("sampler_config") or {}
        configured = {
            "entropy_bound": sampler.get("entropy_bound"),
            "confident": content.get("confidence_threshold"),
            "hottest": content.get("t_max"),
            "coolest": content.get("t_min"),
        }
        numbers = {name: float(value) for name, value in configured.items() if value is not None}
        end_ids = content.get("eos_token_id", ends)
        tokens = tuple(int(token) for token in (end_ids if isinstance(end_ids, list) else [end_ids]))
        return SamplerSettings(tokens, **numbers, most_steps=int(content.get("max_denoising_steps") or 48))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be read: {error}; install the model again") from None
