"""All facts about a model: from the catalog, from its files, and whether it fits this machine.

A GGUF has a sheet of its own: a user's file, or one that Ollama or LM Studio keeps.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.table import Table

from engine.cli.console import labelled, out
from engine.errors import ModelError
from engine.json_file import read_json
from engine.library import store
from engine.library.catalog import FAMILIES, CatalogModel, catalog
from engine.library.device_memory import ALLOWANCE, BYTES_PER_PARAMETER, DeviceMemory, Verdict, bytes_needed, gigabytes
from engine.library.gguf_file import is_gguf
from engine.library.packed_weights import packed_files
from engine.library.precision_names import Precision
from engine.library.resolve import EMBEDDED_FOLDER, OtherModel, folder_of, known_model
from engine.library.store import EMBEDDED, ModelRecord, chosen_model
from engine.library.weights_header import WeightsHeader, read_folder
from engine.memory.mixing_network import MixingNetwork, own_mixing_of
from engine.models.left_to_right.doubt import DOUBT, fitted_doubt_of

if TYPE_CHECKING:
    from engine.models.kind import Runtime
    from engine.models.left_to_right.load import GgufFacts


@attrs.frozen
class ModelSheet:
    """The facts about a model. `name` is a path for a model that is not in the catalog.

    A model that is here has a `folder`, `bytes_here`, and an `architecture`, a `header` and a `runtime` read from its
    files. A pulled model has a `record`. `catalog_entry` is None for a model that is not in the catalog.
    """

    name: str
    parameters: int
    catalog_entry: CatalogModel | None = None
    folder: Path | None = None
    record: ModelRecord | None = None
    bytes_here: int = 0
    architecture: str = ""
    header: WeightsHeader | None = None
    runtime: "Runtime | None" = None

    @property
    def in_use(self) -> bool:
        """Whether it is the default model."""
        return chosen_model().model in (self.name, str(self.folder))

    def bytes_needed(self, precision: Precision) -> int:
        """Return the bytes that the model needs in `precision`."""
        return bytes_needed(self._header.loaded, precision, self._header.plain)

    def verdict(self, precision: Precision, memory: DeviceMemory) -> Verdict | None:
        """Return whether it fits; None if the device does not have this precision."""
        return memory.verdict(precision, self._header.loaded, self._header.plain)

    @property
    def _header(self) -> WeightsHeader:
        return self.header or WeightsHeader(self.parameters, 0, self.parameters)


def sheet_of(model: str) -> ModelSheet:
    """Return the facts about a model by name or folder. Reads only the headers of its files. Raises ModelError."""
    from engine.models.load import runtime_of  # imports the package gguf, as gguf_sheet does

    if model in catalog() and model != EMBEDDED and not store.is_pulled(model):
        return ModelSheet(model, catalog()[model].parameters, catalog()[model])
    folder = folder_of(model).resolve()
    known = known_model(folder)
    record = store.read_record(folder / store.RECORD)
    header = read_folder(folder)
    name = known.name if known else str(folder)
    files = [path for path in folder.iterdir() if path.is_file()]
    size = sum(path.stat().st_size for path in [*files, *packed_files(folder, *files)])
    kind, runtime = _architecture(folder), runtime_of(folder)
    return ModelSheet(name, header.parameters, known, folder, record, size, kind, header, runtime)


def all_sheets() -> list[ModelSheet]:
    """Return a sheet for each model of the catalog and for each pulled model that is no longer in it."""
    return [sheet_of_pulled(name) for name in dict.fromkeys([*catalog(), *store.pulled_names()])]


def sheet_of_pulled(name: str) -> ModelSheet:
    """Return a sheet by name without reading the model's files, which can be many or damaged."""
    known = catalog().get(name)
    parameters = known.parameters if known else 0
    if name == EMBEDDED:
        return ModelSheet(name, parameters, known, EMBEDDED_FOLDER, None, known.bytes_to_pull if known else 0)
    if not store.is_pulled(name):
        return ModelSheet(name, parameters, known)
    folder = store.folder_for(name)
    record = store.read_record(folder / store.RECORD)
    files = record.files if record else ()
    packed = packed_files(folder, *(folder / file.name for file in files))
    size = sum(file.size for file in files) + sum(path.stat().st_size for path in packed)
    return ModelSheet(name, parameters, known, folder, record, size)


def as_json(sheet: ModelSheet, memories: list[DeviceMemory]) -> dict[str, object]:
    """Return the sheet as JSON fields. Sizes are in bytes."""
    return {
        "name": sheet.name,
        "here": str(sheet.folder) if sheet.folder else None,
        "in_use": sheet.in_use,
        "parameters": sheet.parameters,
        "bytes_here": sheet.bytes_here,
        "architecture": sheet.architecture,
        "catalog": attrs.asdict(sheet.catalog_entry) if sheet.catalog_entry else None,
        "pulled": attrs.asdict(sheet.record) if sheet.record else None,
        "runs_in": sheet.runtime.phrase if sheet.runtime else None,
        "reads_suffix": sheet.runtime.reads_suffix if sheet.runtime else None,
        "fits": {
            memory.name: {precision: sheet.verdict(precision, memory) for precision in _precisions(sheet, memories)}
            for memory in memories
        },
    }


def fits(sheet: ModelSheet, memories: list[DeviceMemory]) -> Table:
    """Return a table with the verdict for each precision and memory."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), caption=f"needs: {ALLOWANCE}", caption_justify="left")
    table.add_column("precision", style="cyan")
    table.add_column("needs", justify="right")
    for memory in memories:
        table.add_column(f"{memory.name}: {gigabytes(memory.free)} of {gigabytes(memory.total)} free")
    for precision in _precisions(sheet, memories):
        verdicts = [sheet.verdict(precision, memory) or "not on this hardware" for memory in memories]
        table.add_row(precision, gigabytes(sheet.bytes_needed(precision)), *verdicts)
    return table


def count_of(parameters: int) -> str:
    """Return a number of parameters as text for people."""
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.0f}M"


def facts(sheet: ModelSheet) -> list[tuple[str, str]]:
    """Return the sheet as labels and values; a value can be ""."""
    known, record = sheet.catalog_entry, sheet.record
    rows = [
        ("name", sheet.name),
        ("here", str(sheet.folder) if sheet.folder else "no"),
        ("in use", "yes" if sheet.in_use else "no"),
    ]
    if known is not None:
        active = f", {count_of(known.active_parameters)} of them active" if known.active_parameters else ""
        ids = ", ".join(f"{name} {number}" for name, number in known.other_ids.items())
        rows += [
            ("family", f"{known.family}, loaded as {known.architecture}"),
            ("licence", f"{known.licence}{'' if known.free else ', NOT a free one'}; see {known.licence_page}"),
            ("hub", f"{known.hub} at {known.revision}" if known.hub else ""),
            ("to pull", gigabytes(known.bytes_to_pull) if known.hub and not record else ""),
            ("parameters", f"{count_of(sheet.parameters)}{active}"),
            ("ids", ", ".join(part for part in (f"mask {known.mask_id}" if known.mask_id else "no mask", ids) if part)),
            ("logits", "of the next position" if known.shifted else "of their own position"),
            ("context", f"{known.context_tokens} tokens" if known.context_tokens else "as its config.json says"),
            ("attention", known.attention),
            ("notes", known.notes),
            ("verified", known.verified),
            ("inferred", ", ".join(known.inferred)),
        ]
    else:
        rows += [("parameters", count_of(sheet.parameters)), ("config.json says", sheet.architecture)]
    if sheet.runtime is not None:
        rows += [("runs in", sheet.runtime.phrase), ("reads", _reads(sheet.runtime.reads_suffix))]
        if sheet.folder is not None and sheet.runtime.doubted:
            rows += [("memory", _memory_of(sheet.folder)), ("doubt", _doubt_of(sheet.folder))]
    elif sheet.folder is None and known is not None:
        rows += [("runs in", _planned(known))]
    rows += [("size", gigabytes(sheet.bytes_here) if sheet.folder else "")]
    if record is not None:
        rows += [("commit", record.commit), ("files", f"{len(record.files)}, {gigabytes(record.size)}")]
        rows += [("licence accepted", "yes" if record.accepted else "")]
    return rows


def _planned(known: CatalogModel) -> str:
    """Return what runs a model once it is pulled."""
    if known.file:
        return KERNEL
    return "the kernel on a processor, torch on a GPU" if FAMILIES[known.family].in_kernel else "torch"


def _reads(reads_suffix: bool | None) -> str:
    """Return what a model reads; "" if that is not known."""
    return {True: "code above and below the cursor", False: _READS_ABOVE, None: ""}[reads_suffix]


def _precisions(sheet: ModelSheet, memories: list[DeviceMemory]) -> tuple[Precision, ...]:
    if sheet.catalog_entry is not None and sheet.catalog_entry.family == EMBEDDED:
        return ("int8",)  # as it is on disk
    shows_fp32 = any("fp32" in memory.precisions for memory in memories)
    return tuple(precision for precision in BYTES_PER_PARAMETER if shows_fp32 or precision != "fp32")


def _architecture(folder: Path) -> str:
    try:
        config: Any = read_json(folder / "config.json")
    except (OSError, ValueError):
        raise ModelError(f"there is no readable config.json in {folder}; is it a model's folder?") from None
    if not isinstance(config, dict):
        return ""
    names = config.get("architectures") or [config.get("model_type") or config.get("family") or ""]
    return ", ".join(str(name) for name in names) if isinstance(names, list) else str(names)


KERNEL = "the kernel, on the processor, without torch"


def gguf_of(model: str) -> Path | None:
    """Return the GGUF that a name means: a path, the chosen model, or another program's; None for any other model."""
    try:
        path = folder_of(model)
    except ModelError:
        return None
    return path if is_gguf(path) else None


def gguf_sheet(path: Path) -> "GgufFacts":
    """Return the facts about a GGUF from its header. Raises ModelError in one line for one that cannot be run."""
    from engine.models.left_to_right.load import gguf_facts  # imports NumPy and tokenizers

    return gguf_facts(path)


def _memory_of(path: Path) -> str:
    """Return how the memory of the workspace is used with a model."""
    own = own_mixing_of(path)
    return _NOT_TUNED if own is None else _OFF if MixingNetwork.load(own).is_off else _TUNED


def _doubt_of(path: Path) -> str:
    """Return how many times as dear a wrong text of a model counts, and why."""
    fitted = fitted_doubt_of(path)
    if fitted is None:
        return f"{DOUBT:g}, as for Qwen2.5-Coder 0.5B; `midspan train fit` fits it to this model"
    return f"{fitted:g}, as `midspan train fit` has fitted it"


def show_gguf(sheet: "GgufFacts", as_json: bool) -> None:
    """Print the facts about a GGUF."""
    if as_json:
        typer.echo(json.dumps({**attrs.asdict(sheet), "path": str(sheet.path)}))
        return
    rows = [
        ("name", sheet.name),
        ("file", str(sheet.path)),
        ("family", f"{sheet.architecture}, left to right"),
        ("parameters", count_of(sheet.parameters)),
        ("tensors", sheet.types),
        ("runs in", f"{KERNEL}, as int{sheet.bits}: it runs networks like a {sheet.architecture!r}"),
        ("needs", f"{gigabytes(sheet.bytes_needed)} of memory: {'fits' if sheet.fits else 'does not fit now'}"),
        ("reads", _reads(sheet.reads_suffix)),
        ("memory", _memory_of(sheet.path)),
        ("doubt", _doubt_of(sheet.path)),
    ]
    out.print(labelled(rows))


_TUNED = "mixed with the model's own predictions, as `midspan models tune` has fitted it"
_NOT_TUNED = (
    "mixed with the model's own predictions as for the embedded model; `midspan models tune` fits it to your code"
)
_OFF = "drafts only: `midspan models tune` found that mixing it in does not help this model"
_READS_ABOVE = (
    "code above the cursor only: it has no tokens for filling in the middle. What is below helps through the memory"
)


def show_other_models(models: list[OtherModel]) -> None:
    """Print the models that other programs have, and which of them can be used here."""
    if not models:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), title="of other programs", title_justify="left")
    table.add_column("name", style="cyan")
    for header in ("program", "params", "memory", "here"):
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
