"""Masked models as a kind of model, by the catalog or their files. Our kernel or torch multiplies, torch does the rest.

It is the last row of KINDS: what no kind recognizes is refused here.
"""

from engine.fill.interface import Model
from engine.models.kind import (
    Loading,
    ModelKind,
    Runtime,
    Source,
    in_torch,
    missing_torch,
    nowhere,
    runs_like,
    torch_place,
)
from engine.models.masked.families import denoises, unknown_family


def _load(source: Source, loading: Loading) -> Model:
    if not denoises(source.checkpoint):
        raise unknown_family(source.checkpoint)
    place = torch_place(source, loading)
    from engine.models.masked.load import load

    return load(source.checkpoint, loading.threads, place, loading.precision, loading.on_stage)


def _runtime(source: Source) -> Runtime:
    from engine.models.left_to_right.load import kernel_obstacle

    obstacle = kernel_obstacle(source.checkpoint, "auto")
    if not denoises(source.checkpoint):
        return nowhere(obstacle or "its family is not known")
    if obstacle:
        return in_torch(obstacle)
    why = runs_like(source.config.get("model_type"))
    return Runtime(f"the kernel, on the processor, as int8, with torch around it: {why}{missing_torch()}", True)


MASKED = ModelKind(lambda source: True, _load, _runtime)
