"""The embedded model as a kind of model: config.json says its family, and no model_type."""

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.extras import MODELS, needs_extra
from engine.models.embedded.load import load as load_embedded
from engine.models.embedded.model import FAMILY
from engine.models.embedded.runner import kernel_paths
from engine.models.kind import IN_KERNEL, Loading, ModelKind, Runtime, Source

_WITHOUT_KERNEL = "NumPy, on the processor, without torch: no kernel was built"


def _recognizes(source: Source) -> bool:
    return "model_type" not in source.config


def _check_family(source: Source) -> None:
    family = source.config.get("family")
    if family != FAMILY:
        raise ModelError(f"the model in {source.path} is of family {family!r}; this version knows: {FAMILY}")


def _load(source: Source, loading: Loading) -> Model:
    _check_family(source)
    # "auto" is the kernel: so small a model needs no GPU, and torch takes seconds to import.
    place = loading.asked_place
    with needs_extra(f'precision "{loading.precision}" on device "{place}"', MODELS):
        if loading.asks_for_torch:
            import torch

            torch.set_num_threads(loading.threads)
        return load_embedded(source.path, source.config, loading.threads, place, loading.precision)


def _runtime(source: Source) -> Runtime:
    _check_family(source)
    return Runtime(IN_KERNEL if kernel_paths() else _WITHOUT_KERNEL, True)


EMBEDDED = ModelKind(_recognizes, _load, _runtime)
