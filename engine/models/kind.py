"""What a kind of model is: how it is recognized, loaded, described. engine/models/load.py has the table of kinds."""

import logging
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.json_file import read_json
from engine.library.device_memory import has_gpu_driver, unseen_gpu
from engine.library.extras import MODELS, how_to_install
from engine.library.gguf_file import is_gguf
from engine.library.precision_names import TORCH_PRECISIONS, PrecisionSetting
from engine.models.stock.checkpoint import Checkpoint, JsonObject, OnStage

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)
IN_KERNEL = "the kernel, on the processor, without torch"
"""What runs a model whose every part the kernel has."""


@attrs.frozen
class Source:
    """A model's folder with its config.json, or a GGUF, of which `config` is empty."""

    path: Path
    config: JsonObject

    @classmethod
    def of(cls, path: Path) -> "Source":
        """Read the config.json of a folder. Raises ModelError in one line."""
        if is_gguf(path):
            return cls(path, {})
        file = path / "config.json"
        try:
            config = read_json(file)
        except FileNotFoundError:
            raise ModelError(f"no config.json in {path}; is it a model's folder?") from None
        except ValueError as error:
            raise ModelError(f"{file} is not valid JSON: {error}") from None
        except OSError as error:
            raise ModelError(f"{file} cannot be read: {error.strerror}") from None
        if not isinstance(config, dict):
            raise ModelError(f"{file} holds no JSON object; install the model again")
        return cls(path, config)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The folder's other JSON files too. Raises ModelError for a damaged one."""
        return Checkpoint.of(self.path, self.config)


@attrs.frozen
class Loading:
    """How a model is asked for: threads, "auto", "cpu" or "cuda", and a precision.

    `on_stage` is told how far a model of others is in the kernel. `load_drafter` loads the model in a folder to draft
    for this one, on the device that this one is on.
    """

    threads: int
    device: str
    precision: PrecisionSetting
    on_stage: OnStage
    load_drafter: Callable[[Path, str], Model]

    @property
    def asked_place(self) -> str:
        """ "cuda" where it is asked for, else "cpu". Raises ModelError where there is no GPU."""
        return device_of(self.device) if self.device == "cuda" else "cpu"

    @property
    def asks_for_torch(self) -> bool:
        return self.device == "cuda" or self.precision in TORCH_PRECISIONS


@attrs.frozen
class Runtime:
    """What runs a model on this machine, and why, as a phrase.

    reads_suffix: None if nothing runs it. doubted: whether it is believed as left_to_right/doubt.py says.
    """

    phrase: str
    reads_suffix: bool | None
    doubted: bool = False


@attrs.frozen
class ModelKind:
    """A row of KINDS. All three raise ModelError in one line; only `load` may import torch.

    runtime: what runs it if nobody asks for a device or a precision.
    """

    recognizes: Callable[[Source], bool]
    load: Callable[[Source, Loading], Model]
    runtime: Callable[[Source], Runtime]


def device_of(device: str) -> str:
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


def torch_place(source: Source, loading: Loading) -> "torch.device":
    """Return where torch runs a model, with the threads that are asked for.

    Raises ModelError for weights that others have quantized.
    """
    import torch

    from engine.models.quantization.quantizer import refuse_quantized

    place = torch.device(device_of(loading.device))
    torch.set_num_threads(loading.threads)
    refuse_quantized(source.path, source.config)
    return place


def in_torch(why: str) -> Runtime:
    """Return the runtime of a model that torch runs here."""
    place = "the processor" if device_of("auto") == "cpu" else "the GPU"
    return Runtime(f"torch, on {place}: {why}{missing_torch()}", True)


def nowhere(why: str) -> Runtime:
    """Return the runtime of a model that nothing runs here."""
    return Runtime(f"nothing here, but a server may: {why}", None)


def runs_like(name: object) -> str:
    """Return why the kernel runs a model."""
    return f"it runs networks like a {str(name)[:40]!r}"


def missing_torch() -> str:
    """Return how to install torch, as the end of a phrase; "" if it is there."""
    return "" if find_spec("torch") else f"; torch is missing: {how_to_install(MODELS)}"
