"""The catalog has only valid entries, and docs/models.md shows the same facts."""

import json
import re
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.library.catalog import FAMILIES, CatalogModel, catalog, read_catalog
from engine.library.device_memory import DeviceMemory, bytes_needed, machine_memory
from engine.library.resolve import EMBEDDED_FOLDER
from engine.library.weights_header import read_weights

ROOT = Path(__file__).parents[3]
GOOD = """
[a-model]
family = "dream"
hub = "owner/name"
licence = "MIT"
free = true
parameters = 10
architecture = "Qwen2"
shifted = true
attention = "full"
notes = "none"
verified = "nothing"
"""


def test_the_catalog_has_every_family_once_but_qwen_and_ggufs_in_several_sizes() -> None:
    families = [model.family for model in catalog().values()]
    assert set(families) == set(FAMILIES)
    assert len(families) == len(FAMILIES) + 10
    assert (families.count("qwen-fim"), families.count("gguf")) == (3, 9)
    assert all(bool(model.file) == (model.family == "gguf") for model in catalog().values())


def test_the_entry_of_the_embedded_model_agrees_with_its_files() -> None:
    model = catalog()["embedded"]
    config = json.loads((EMBEDDED_FOLDER / "config.json").read_text())
    header = read_weights()
    assert model.context_tokens == config["shape"]["context_tokens"]
    assert model.mask_id == config["marks"]["mask"]
    assert model.licence == config["licence"]
    assert model.parameters == pytest.approx(header.parameters, rel=0.02)
    assert model.bytes_to_pull == pytest.approx(header.megabytes * 1e6, rel=0.02)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (GOOD.replace('"dream"', '"dreams"'), "family is 'dreams'"),
        (GOOD.replace("owner/name", "name"), "hub is 'name'"),
        (GOOD.replace("parameters = 10", "parameters = 0"), "'parameters' must be > 0"),
        (GOOD.replace("free = true", 'free = "yes"'), "'free' must be"),
        (GOOD + 'size = "large"\n', "unexpected keyword argument 'size'"),
        (GOOD + 'inferred = ["colour"]\n', "inferred names colour"),
        (GOOD.replace("[a-model]", '["A/model"]'), "'name' must match"),
        (GOOD.replace('licence = "MIT"\n', ""), "licence"),
    ],
)
def test_a_wrong_entry_is_reported_with_its_name(tmp_path: Path, wrong: str, says: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text(GOOD)
    assert read_catalog(path)["a-model"].parameters == 10
    path.write_text(wrong)
    with pytest.raises(ModelError) as caught:
        read_catalog(path)
    assert says in str(caught.value)
    assert "model in catalog.toml is wrong" in str(caught.value)


def test_whether_a_model_fits_depends_on_its_bytes_and_the_allowance() -> None:
    card = DeviceMemory("card", 24_000_000_000, 20_000_000_000, ("bf16", "int8", "int4"))
    gemma = catalog()["diffusion-gemma-26b"].parameters
    assert bytes_needed(gemma, "bf16") > 50.5e9
    assert card.verdict("bf16", gemma) == "too large"
    assert card.verdict("int8", gemma) == "too large"
    assert card.verdict("int4", gemma) == "fits"
    assert card.verdict("fp8", gemma) is None
    assert card.verdict("bf16", 9_000_000_000) == "fits once other programs make room"


def test_the_memory_of_this_machine_is_known() -> None:
    memory = machine_memory()
    assert memory is not None
    assert 0 < memory.free <= memory.total


def test_the_document_describes_every_model_as_the_catalog_does() -> None:
    document = (ROOT / "docs" / "models.md").read_text("utf-8")
    rows = {cells[0].strip("`"): cells for cells in _rows(document) if len(cells) == len(_row(catalog()["embedded"]))}
    for name, model in catalog().items():
        assert rows[name] == _row(model), name
    for file in ("midspan-model.json", "midspan models pull"):
        assert file in document


def _rows(document: str) -> list[list[str]]:
    lines = re.findall(r"^\| (`[a-z].*) \|$", document, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def _row(model: CatalogModel) -> list[str]:
    """Return the cells of a model's row; docs/models.md names the columns."""
    size = f"{model.bytes_to_pull / 1e9:.1f} GB" if model.hub else f"{model.bytes_to_pull / 1e6:.1f} MB"
    return [
        f"`{model.name}`",
        f"`{model.hub}`" if model.hub else "comes with Midspan",
        model.licence if model.free else f"**{model.licence}**",
        size,
        *(f"{bytes_needed(model.parameters, precision) / 1e9:.0f}" for precision in ("bf16", "int8", "int4")),
        f"{model.context_tokens:,}" if model.context_tokens else "?",
        "none" if model.mask_id is None else str(model.mask_id),
        "yes" if model.shifted else "no",
        ", ".join(model.inferred) or "-",
    ]
