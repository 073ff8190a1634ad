"""From a model's name to a loaded model."""

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.json_file import read_json
from engine.library.device_memory import has_gpu_driver, unseen_gpu
from engine.library.extras import MODELS, how_to_install, needs_extra
from engine.library.gguf_file import is_gguf
from engine.library.precision_names import TORCH_PRECISIONS, PrecisionSetting, check_precision_setting
from engine.library.resolve import folder_of
from engine.models.embedded.load import load as load_embedded
from engine.models.embedded.model import FAMILY
from engine.models.stock.checkpoint import NOTES, Checkpoint, OnStage, read_object

_log = logging.getLogger(__name__)
_DIFFUSION_GEMMA = "diffusion_gemma"
"""The model_type of such a checkpoint."""


def load(
    model: str,
    *,
    threads: int = 0,
    device: str = "auto",
    precision: str = "auto",
    on_stage: OnStage = lambda stage: None,
) -> Model:
    """Load a model by name or folder. `threads` 0 takes every core; `device` is "auto", "cpu" or "cuda"; `precision` is
    one of precision_names.PRECISION_SETTINGS. The embedded model needs torch for "fp32" and "bf16". `on_stage` is told
    how far a model of others is in the kernel.

    Raises ModelError with one line that a user can act on.
    """
    _stay_offline()
    # oneDNN, below torch, would keep 1,024 primitives: one for each shape, and shapes change with each context.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8")
    folder = folder_of(model)
    if is_gguf(folder):
        return _load_gguf(folder, threads or os.cpu_count() or 1, device, precision, on_stage)
    try:
        config = read_json(folder / "config.json")
    except FileNotFoundError:
        raise ModelError(f"no config.json in {folder}; is it a model's folder?") from None
    except ValueError as error:
        raise ModelError(f"{folder / 'config.json'} is not valid JSON: {error}") from None
    except OSError as error:
        raise ModelError(f"{folder / 'config.json'} cannot be read: {error.strerror}") from None
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f'unknown device {device!r}; use "auto", "cpu" or "cuda"')
    precision = check_precision_setting(precision)
    count = threads or os.cpu_count() or 1
    family = config.get("family") if isinstance(config, dict) else None
    if family == FAMILY:
        # "auto" is the kernel: so small a model needs no GPU, and torch takes seconds to import.
        place = _device(device) if device == "cuda" else "cpu"
        with needs_extra(f'precision "{precision}" on device "{place}"', MODELS):
            if place == "cuda" or precision in TORCH_PRECISIONS:
                _use_threads(count)
            return load_embedded(folder, config, count, place, precision)
    if family is None and isinstance(config, dict):
        if precision in ("auto", "int8", "int4") and device != "cuda":
            found = _in_kernel(folder, config, count, device, precision, on_stage)
            if found is not None:
                return found
        if find_spec("torch") is None and (runtime := runtime_of(folder)).reads_suffix is None:
            # Torch, some gigabytes, would not help.
            raise ModelError(f"the model in {folder} is run by {runtime.phrase}")
        try:
            with needs_extra(f"the model in {folder}", MODELS):
                return _load_larger(folder, config, count, device, precision, on_stage)
        except (ArithmeticError, RecursionError) as error:
            problem = f"its config.json says sizes that no model has ({type(error).__name__})"
            raise ModelError(f"the model in {folder} cannot be loaded: {problem}") from error
    raise ModelError(f"the model in {folder} is of family {family!r}; this version knows: {FAMILY}")


def _load_gguf(path: Path, threads: int, device: str, precision: str, on_stage: OnStage) -> Model:
    """Load a GGUF: into the kernel, unless a GPU, fp32 or bf16 is asked for."""
    from engine.models.left_to_right.load import load_gguf

    place = _device(device) if device == "cuda" else "cpu"
    with needs_extra(f'precision "{precision}" on device "{place}"', MODELS):
        return load_gguf(path, threads, place, check_precision_setting(precision), on_stage)


def _in_kernel(
    folder: Path, config: dict[str, Any], threads: int, device: str, precision: PrecisionSetting, on_stage: OnStage
) -> Model | None:
    """Load a left-to-right checkpoint into the kernel; None if it is another kind, or there is a GPU or no kernel."""
    from engine.models.left_to_right.load import folder_shape, load_folder
    from engine.models.masked.families import denoises

    checkpoint = Checkpoint.of(folder, config)
    if denoises(checkpoint) or _kernel_obstacle(checkpoint, device):
        return None
    shape = folder_shape(checkpoint)
    return None if shape is None else load_folder(checkpoint, shape, threads, precision, on_stage)


def _kernel_obstacle(checkpoint: Checkpoint, device: str) -> str:
    """Return why a checkpoint's network does not run in the kernel; "" if it does."""
    from engine.models.embedded.runner import kernel_paths
    from engine.models.left_to_right.load import folder_obstacle
    from engine.models.masked.families import denoises

    notes = checkpoint.notes
    if not kernel_paths():
        return "no kernel was built"
    if obstacle := folder_obstacle(checkpoint):
        return obstacle
    if (notes.drafter or notes.memory) and not denoises(checkpoint):
        return f"{NOTES} asks for a drafter or a memory, which torch has"
    return "" if _device(device) == "cpu" else "there is a GPU"


@attrs.frozen
class Runtime:
    """What runs the model in a folder on this machine, and why, as a phrase.

    reads_suffix: None if nothing runs it. doubted: whether it is believed as left_to_right/doubt.py says.
    """

    phrase: str
    reads_suffix: bool | None
    doubted: bool = False


def runtime_of(folder: Path) -> Runtime:
    """Return what runs the model in a folder if nobody asks for a device or a precision. Loads no weights.

    Never raises ModelError: the phrase tells the problem.
    """
    try:
        return _runtime_of(folder)
    except ModelError as error:
        return Runtime(f"nothing here: {error}", None)


def _runtime_of(folder: Path) -> Runtime:
    from engine.models.embedded.runner import kernel_paths
    from engine.models.left_to_right.load import folder_specials
    from engine.models.masked.families import denoises, reads_left_to_right
    from engine.models.stock.tokenizer import tokenizer_of

    config = read_object(folder / "config.json")
    if config.get("family") == FAMILY:
        without = "NumPy, on the processor, without torch: no kernel was built"
        return Runtime("the kernel, on the processor, without torch" if kernel_paths() else without, True)
    checkpoint = Checkpoint.of(folder, config)
    masked, kind = denoises(checkpoint), config.get("model_type")
    missing = "" if find_spec("torch") else f"; torch is missing: {how_to_install(MODELS)}"
    if obstacle := _kernel_obstacle(checkpoint, "auto"):
        if not (masked or reads_left_to_right(checkpoint) or kind == _DIFFUSION_GEMMA):
            return Runtime(f"nothing here, but a server may: {obstacle}", None)
        place = "the processor" if _device("auto") == "cpu" else "the GPU"
        return Runtime(f"torch, on {place}: {obstacle}{missing}", True)
    why = f"it runs networks like a {str(kind)[:40]!r}"
    if masked:
        return Runtime(f"the kernel, on the processor, as int8, with torch around it: {why}{missing}", True)
    reads_suffix = folder_specials(checkpoint, tokenizer_of(checkpoint)).fim is not None
    return Runtime(f"the kernel, on the processor, without torch, as int8: {why}", reads_suffix, doubted=True)


def _device(device: str) -> str:
    """Return "cuda" where a GPU is wanted and there, else "cpu". Imports torch only where there is a GPU's driver.

    Logs it if torch does not see the GPU of a driver.
    """
    if device == "cpu" or not (device == "cuda" or has_gpu_driver()):
        return "cpu"
    try:
        import torch

        found = torch.cuda.is_available()
        if device == "auto" and not found:
            _log.warning("%s", unseen_gpu(torch.__version__))
    except ModuleNotFoundError:
        if device == "cuda":
            raise ModelError(f'device "cuda" needs torch; {how_to_install(MODELS)}') from None
        return "cpu"
    except (ImportError, OSError):
        found = False
    if device == "cuda" and not found:
        raise ModelError('device "cuda" was asked for, but torch sees no GPU; use "auto" or "cpu"')
    return "cuda" if found else "cpu"


def _use_threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)


def _load_larger(
    folder: Path, config: dict[str, Any], threads: int, device: str, precision: PrecisionSetting, on_stage: OnStage
) -> Model:
    """Load a released checkpoint, with torch and mostly with transformers, which take seconds to import."""
    import torch

    from engine.models import diffusion_gemma
    from engine.models.quantization.quantizer import refuse_quantized

    place = torch.device(_device(device))
    _use_threads(threads)
    refuse_quantized(folder, config)
    if config.get("model_type") == _DIFFUSION_GEMMA:
        return diffusion_gemma.load(folder, config, threads, place, precision)
    if "model_type" not in config:
        raise ModelError(f"the model in {folder} is of family None; this version knows: {FAMILY}")
    from engine.models.left_to_right.torch_load import load as load_left_to_right
    from engine.models.masked.families import reads_left_to_right
    from engine.models.masked.load import load as load_masked

    def load_drafter(folder: Path) -> Model:
        # Where the model is: a draft takes turns with its passes.
        return load(str(folder), threads=threads, device=place.type, precision=precision)

    if reads_left_to_right(Checkpoint.of(folder, config)):
        return load_left_to_right(folder, config, threads, place, load_drafter, precision)
    return load_masked(folder, config, threads, place, precision, on_stage)


def _stay_offline() -> None:
    """See that no library asks the hub for anything while models load and run: only `midspan models pull` may."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    if (constants := sys.modules.get("huggingface_hub.constants")) is not None:
        # It reads the environment once, when it is imported.
        vars(constants)["HF_HUB_OFFLINE"] = True
