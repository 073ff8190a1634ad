"""Models that write left to right, two kinds: a GGUF, and a folder of a shape that the kernel or torch runs."""

from pathlib import Path

from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.extras import MODELS, needs_extra
from engine.library.gguf_file import is_gguf
from engine.models.kind import (
    IN_KERNEL,
    Loading,
    ModelKind,
    Runtime,
    Source,
    in_torch,
    nowhere,
    runs_like,
    torch_place,
)
from engine.models.left_to_right.family import family_of_config
from engine.models.masked.families import denoises, reads_left_to_right, said_family
from engine.models.stock.checkpoint import NOTES
from engine.models.stock.tokenizer import tokenizer_of


def _load_gguf(source: Source, loading: Loading) -> Model:
    """Load a GGUF: into the kernel, unless a GPU, fp32 or bf16 is asked for."""
    from engine.models.left_to_right.load import load_gguf

    place = loading.asked_place
    with needs_extra(f'precision "{loading.precision}" on device "{place}"', MODELS):
        return load_gguf(source.path, loading.threads, place, loading.precision, loading.on_stage)


def _gguf_runtime(source: Source) -> Runtime:
    from engine.models.left_to_right.load import gguf_facts

    facts = gguf_facts(source.path)
    return Runtime(
        f"{IN_KERNEL}, as int{facts.bits}: {runs_like(facts.architecture)}", facts.reads_suffix, doubted=True
    )


GGUF = ModelKind(lambda source: is_gguf(source.path), _load_gguf, _gguf_runtime)


def _recognizes(source: Source) -> bool:
    checkpoint = source.checkpoint
    if said_family(checkpoint):
        return reads_left_to_right(checkpoint)
    return not denoises(checkpoint) and family_of_config(source.config) is not None


def _load(source: Source, loading: Loading) -> Model:
    from engine.models.left_to_right.load import folder_shape, load_folder

    obstacle = _obstacle(source, loading)
    if not obstacle and (shape := folder_shape(source.checkpoint)) is not None:
        return load_folder(source.checkpoint, shape, loading.threads, loading.precision, loading.on_stage)
    if not reads_left_to_right(source.checkpoint):
        raise ModelError(f"the model in {source.path} is run by {nowhere(obstacle).phrase}")
    place = torch_place(source, loading)
    from engine.models.left_to_right.torch_load import load

    def load_drafter(folder: Path) -> Model:
        return loading.load_drafter(folder, place.type)

    return load(source.checkpoint, loading.threads, place, load_drafter, loading.precision)


def _runtime(source: Source) -> Runtime:
    from engine.models.left_to_right.load import folder_specials

    checkpoint = source.checkpoint
    if obstacle := _kernel_obstacle(source, "auto"):
        return in_torch(obstacle) if reads_left_to_right(checkpoint) else nowhere(obstacle)
    reads_suffix = folder_specials(checkpoint, tokenizer_of(checkpoint)).fim is not None
    return Runtime(f"{IN_KERNEL}, as int8: {runs_like(source.config.get('model_type'))}", reads_suffix, doubted=True)


def _obstacle(source: Source, loading: Loading) -> str:
    """Return why the kernel does not run a folder as it is asked for; "" if it does."""
    from engine.models.left_to_right.load import KERNEL_PRECISIONS

    if loading.precision not in KERNEL_PRECISIONS:
        return f"the kernel has no {loading.precision}"
    return "a GPU is asked for" if loading.device == "cuda" else _kernel_obstacle(source, loading.device)


def _kernel_obstacle(source: Source, device: str) -> str:
    from engine.models.left_to_right.load import kernel_obstacle

    notes = source.checkpoint.notes
    if (obstacle := kernel_obstacle(source.checkpoint, device)) or not (notes.drafter or notes.memory):
        return obstacle
    return f"{NOTES} asks for a drafter or a memory, which torch has"


LEFT_TO_RIGHT = ModelKind(_recognizes, _load, _runtime)
