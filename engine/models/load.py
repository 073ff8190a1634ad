"""From a model's name to a loaded model."""

import os
import sys
from pathlib import Path

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.extras import MODELS, needs_extra
from engine.library.precision_names import check_precision_setting
from engine.library.resolve import folder_of
from engine.models.diffusion_gemma.kind import DIFFUSION_GEMMA
from engine.models.embedded.kind import EMBEDDED
from engine.models.kind import Loading, ModelKind, Runtime, Source
from engine.models.left_to_right.kind import GGUF, LEFT_TO_RIGHT
from engine.models.masked.kind import MASKED
from engine.models.stock.checkpoint import OnStage

KINDS = (GGUF, EMBEDDED, DIFFUSION_GEMMA, LEFT_TO_RIGHT, MASKED)
"""The first that recognizes a model loads it. The last one takes all that the others leave, and may refuse it."""


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
    source = Source.of(folder_of(model))
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f'unknown device {device!r}; use "auto", "cpu" or "cuda"')

    def load_drafter(folder: Path, place: str) -> Model:
        # Where the model is: a draft takes turns with its passes.
        return load(str(folder), threads=threads, device=place, precision=precision)

    count = threads or os.cpu_count() or 1
    loading = Loading(count, device, check_precision_setting(precision), on_stage, load_drafter)
    try:
        with needs_extra(f"the model in {source.path}", MODELS):
            return _kind_of(source).load(source, loading)
    except (ArithmeticError, RecursionError) as error:
        problem = f"its config.json says sizes that no model has ({type(error).__name__})"
        raise ModelError(f"the model in {source.path} cannot be loaded: {problem}") from error


def runtime_of(path: Path) -> Runtime:
    """Return what runs the model in a folder or a GGUF if nobody asks for a device or a precision. Loads no weights.

    Never raises ModelError: the phrase tells the problem.
    """
    try:
        source = Source.of(path)
        return _kind_of(source).runtime(source)
    except ModelError as error:
        return Runtime(f"nothing here: {error}", None)


def _kind_of(source: Source) -> ModelKind:
    """Return the kind of a model. Raises ModelError for a folder that is none."""
    return next(each for each in KINDS if each.recognizes(source))


def _stay_offline() -> None:
    """See that no library asks the hub for anything while models load and run: only `midspan models pull` may."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    if (constants := sys.modules.get("huggingface_hub.constants")) is not None:
        # It reads the environment once, when it is imported.
        vars(constants)["HF_HUB_OFFLINE"] = True
