"""What `midspan models` says of GGUF files: a user's own, and those that Ollama and LM Studio keep."""

import json
from collections import Counter
from pathlib import Path

import attrs
import typer
from rich.table import Table

from engine.cli.console import out
from engine.cli.model_sheet import count_of
from engine.errors import ModelError
from engine.library.device_memory import gigabytes, machine_memory
from engine.library.gguf_file import is_gguf, read_header
from engine.library.other_programs import OtherModel
from engine.library.resolve import folder_of
from engine.memory.mixing_network import own_mixing_of

KERNEL = "the kernel, on the processor, without torch"


@attrs.frozen
class GgufSheet:
    """The facts about a GGUF. `bytes_needed`: of memory, for weights and all else. `types`: of its tensors."""

    path: Path
    name: str
    architecture: str
    parameters: int
    types: str
    bits: int
    bytes_needed: int
    reads_suffix: bool
    context_tokens: int
    fits: bool


def gguf_of(model: str) -> Path | None:
    """Return the GGUF that a name means: a path, the chosen model, or another program's; None for any other model."""
    try:
        path = folder_of(model)
    except ModelError:
        return None
    return path if is_gguf(path) else None


def gguf_sheet(path: Path) -> GgufSheet:
    """Return the facts about a GGUF from its header. Raises ModelError in one line for one that cannot be run."""
    from engine.models.llama.load import gguf_facts  # imports the package gguf, which takes a quarter of a second

    header = read_header(path)
    facts = gguf_facts(header)
    types = Counter(tensor.kind for tensor in header.tensors.values() if len(tensor.sides) > 1)
    memory = machine_memory()
    return GgufSheet(
        path=path,
        name=facts.name,
        architecture=header.architecture,
        parameters=facts.parameters,
        types=", ".join(f"{kind} ({count})" for kind, count in types.most_common()),
        bits=facts.bits,
        bytes_needed=facts.bytes_needed,
        reads_suffix=facts.reads_suffix,
        context_tokens=facts.context_tokens,
        fits=memory is None or facts.bytes_needed <= memory.free,
    )


def show_gguf(sheet: GgufSheet, as_json: bool) -> None:
    """Print the facts about a GGUF."""
    if as_json:
        typer.echo(json.dumps({**attrs.asdict(sheet), "path": str(sheet.path)}))
        return
    reads = "code above and below the cursor" if sheet.reads_suffix else _READS_ABOVE
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan")
    table.add_column(overflow="fold")
    for label, value in (
        ("name", sheet.name),
        ("file", str(sheet.path)),
        ("family", f"{sheet.architecture}, left to right"),
        ("parameters", count_of(sheet.parameters)),
        ("tensors", sheet.types),
        ("runs in", f"{KERNEL}, as int{sheet.bits}"),
        ("needs", f"{gigabytes(sheet.bytes_needed)} of memory: {'fits' if sheet.fits else 'does not fit now'}"),
        ("reads", reads),
        ("memory", _TUNED if own_mixing_of(sheet.path) else _NOT_TUNED),
    ):
        table.add_row(label, value)
    out.print(table)


_TUNED = "mixed with the model's own predictions, as `midspan models tune` has fitted it"
_NOT_TUNED = "drafts only; `midspan models tune` fits how to mix it with the model's own predictions"
_READS_ABOVE = (
    "code above the cursor only: it has no tokens for filling in the middle. What is below helps through the memory"
)


def show_other_models(models: list[OtherModel]) -> None:
    """Print the models that other programs have, and which of them can be used here."""
    if not models:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), title="of other programs", title_justify="left")
    table.add_column("name", style="cyan")
    for header in ("program", "weights", "memory", "here"):
        table.add_column(header)
    for model in models:
        try:
            sheet = gguf_sheet(model.path)
            needed, state = gigabytes(sheet.bytes_needed), "fits" if sheet.fits else "does not fit now"
            row = (count_of(sheet.parameters), needed, state)
        except ModelError as error:
            row = ("?", "?", str(error).removeprefix(str(model.path)).strip())
        table.add_row(model.name, model.program, *row)
    out.print(table)
    out.print("use one with: midspan models use NAME", style="dim", soft_wrap=True)


def found_as_json(model: OtherModel) -> dict[str, object]:
    """Return another program's model as JSON fields."""
    fields: dict[str, object] = {"name": model.name, "program": model.program, "here": str(model.path)}
    try:
        sheet = gguf_sheet(model.path)
    except ModelError as error:
        return {**fields, "problem": str(error)}
    return {**fields, "parameters": sheet.parameters, "bytes_needed": sheet.bytes_needed, "fits_now": sheet.fits}
