"""DiffusionGemma as a kind of model: config.json says its model_type. torch runs it."""

from engine.fill.interface import Model
from engine.models.kind import Loading, ModelKind, Runtime, Source, in_torch, torch_place

_MODEL_TYPE = "diffusion_gemma"


def _recognizes(source: Source) -> bool:
    return bool(source.config.get("model_type") == _MODEL_TYPE)


def _load(source: Source, loading: Loading) -> Model:
    config = source.checkpoint.config  # a damaged file beside it is said before torch is imported
    place = torch_place(source, loading)
    from engine.models.diffusion_gemma.loading import load

    return load(source.path, config, loading.threads, place, loading.precision)


def _runtime(source: Source) -> Runtime:
    return in_torch(f"the kernel does not run a {_MODEL_TYPE!r}")


DIFFUSION_GEMMA = ModelKind(_recognizes, _load, _runtime)
