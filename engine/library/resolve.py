"""From the name that a user gives a model to its folder. Does not import torch."""

import difflib
from pathlib import Path

from engine.errors import ModelError
from engine.library import store
from engine.library.catalog import CatalogModel, catalog
from engine.library.chosen_model import DEFAULT, EMBEDDED, chosen_model
from engine.library.gguf_file import is_gguf
from engine.library.other_programs import elsewhere

EMBEDDED_FOLDER = Path(__file__).resolve().parent.parent / "weights"


def folder_of(model: str) -> Path:
    """Return the folder of a model: "embedded", "default", a pulled model's name, a path, or what another program has,
    tried in this order. A GGUF is a file, not a folder, also one that was pulled.

    Checks the sizes of a pulled model's files. Raises ModelError with what to do.
    """
    if model == DEFAULT:
        model = chosen_model().model
    if model == EMBEDDED:
        return EMBEDDED_FOLDER
    folder = store.folder_for(model) if store.is_pulled(model) else Path(model).expanduser()
    if not folder.exists() and (found := elsewhere(model)) is not None:
        folder = found
    if is_gguf(folder):
        return folder
    if not folder.is_dir():
        raise ModelError(_not_found_line(model))
    record = store.read_record(folder / store.RECORD)
    if record is not None:
        store.check(folder, record)
        if (known := catalog().get(record.name)) is not None and known.file:
            return folder / known.file
    return folder


def known_model(folder: Path) -> CatalogModel | None:
    """Return the catalog's entry of the model in `folder`; None if it was not pulled or has no entry.

    Raises ModelError when the folder's record is damaged.
    """
    if folder == EMBEDDED_FOLDER:
        return catalog()[EMBEDDED]
    record = store.read_record(folder / store.RECORD)
    return None if record is None else catalog().get(record.name)


def _not_found_line(model: str) -> str:
    if model in catalog():
        is_partial = store.partial_folder(model).is_dir()
        problem = "was pulled only in part; continue with" if is_partial else "is not here; get it with"
        return f"the model {model} {problem}: midspan models pull {model}"
    similar = difflib.get_close_matches(model.lower(), catalog(), n=3, cutoff=0.5)
    question = f"; did you mean {' or '.join(similar)}?" if similar else ""
    return f"no model {model!r}: it is neither a name that `midspan models list` shows, nor a folder or GGUF{question}"
