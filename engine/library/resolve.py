"""From what a user calls a model to its folder; free of torch."""

import difflib
from pathlib import Path

from engine.errors import ModelError
from engine.library import store
from engine.library.catalog import CatalogModel, catalog
from engine.library.chosen_model import DEFAULT, EMBEDDED, chosen_model

EMBEDDED_FOLDER = Path(__file__).resolve().parent.parent / "weights"


def folder_of(model: str) -> Path:
    """Return where a model lies: "embedded", "default", the name of a pulled one, or a folder, looked up in this order.

    The sizes of a pulled model's files are checked. Raises ModelError, with what to do.
    """
    if model == DEFAULT:
        model = chosen_model().model
    if model == EMBEDDED:
        return EMBEDDED_FOLDER
    folder = store.folder_for(model) if store.is_pulled(model) else Path(model).expanduser()
    if not folder.is_dir():
        raise ModelError(_why_not(model))
    record = store.read_record(folder / store.RECORD)
    if record is not None:
        store.check(folder, record)
    return folder


def known_model(folder: Path) -> CatalogModel | None:
    """Return what the catalog knows about the model in `folder`; None where it was not pulled, or is not in it.

    Raises ModelError where the folder's record is damaged.
    """
    if folder == EMBEDDED_FOLDER:
        return catalog()[EMBEDDED]
    record = store.read_record(folder / store.RECORD)
    return None if record is None else catalog().get(record.name)


def _why_not(model: str) -> str:
    if model in catalog():
        begun = store.partial_folder(model).is_dir()
        found = "was pulled only in part; go on with" if begun else "is not here; get it with"
        return f"the model {model} {found}: midspan models pull {model}"
    near = difflib.get_close_matches(model.lower(), catalog(), n=3, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no model {model!r}: it is neither a name that `midspan models list` shows nor a folder{meant}"
