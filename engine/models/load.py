"""From a model's name to a loaded model."""

import json
import os
import sys
from pathlib import Path

import torch

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.precision_names import check_precision_setting
from engine.library.resolve import folder_of
from engine.models import diffusion_gemma
from engine.models.embedded.card import FAMILY
from engine.models.embedded.load import load as load_embedded
from engine.models.quantization.released import refuse_quantized


def load(model: str, *, threads: int = 0, device: str = "auto", precision: str = "auto") -> Model:
    """Load a model by name or folder. `threads` 0 takes every core; `device` is "auto", "cpu" or "cuda"; `precision` is
    one of precision_names.PRECISION_SETTINGS; the embedded model ignores it.

    Raises ModelError with one line that a user can act on.
    """
    _stay_offline()
    folder = folder_of(model)
    try:
        config = json.loads((folder / "config.json").read_text())
    except FileNotFoundError:
        raise ModelError(f"no config.json in {folder}; is it a model's folder?") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{folder / 'config.json'} is not valid JSON: {error}") from None
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f'unknown device {device!r}; use "auto", "cpu" or "cuda"')
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError('device "cuda" was asked for, but torch sees no GPU; use "auto" or "cpu"')
    precision = check_precision_setting(precision)
    place = torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    family = config.get("family") if isinstance(config, dict) else None
    if family == FAMILY:
        return load_embedded(folder, config, count, place)
    if isinstance(config, dict):
        refuse_quantized(folder, config)
    if isinstance(config, dict) and config.get("model_type") == diffusion_gemma.MODEL_TYPE:
        return diffusion_gemma.load(folder, config, count, place, precision)
    if family is None and isinstance(config, dict) and "model_type" in config:
        # With transformers, which takes seconds to import.
        from engine.models.masked.load import load as load_masked
        from engine.models.masked.recognise import reads_left_to_right
        from engine.models.qwen_fim.load import load as load_left_to_right
        from engine.models.stock.checkpoint import Checkpoint

        def load_drafter(folder: Path) -> Model:
            return load(str(folder), threads=threads, device=device, precision=precision)

        if reads_left_to_right(Checkpoint.of(folder, config)):
            return load_left_to_right(folder, config, count, place, load_drafter, precision)
        return load_masked(folder, config, count, place, precision)
    raise ModelError(f"the model in {folder} is of family {family!r}; this version knows: {FAMILY}")


def _stay_offline() -> None:
    """See that no library asks the hub for anything while models load and run: only `midspan models pull` may."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    if (constants := sys.modules.get("huggingface_hub.constants")) is not None:
        # It reads the environment once, when it is imported.
        vars(constants)["HF_HUB_OFFLINE"] = True
