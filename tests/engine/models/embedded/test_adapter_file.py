"""An adapter's file is its model's and whole, or it is refused in one line."""

from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from support.kernel_passes import ODD, QWEN2, random_adapter

from engine.errors import ModelError
from engine.models.embedded.adapter import MOST_RANK, Adapter, AdapterKey, Rounded

KEY = AdapterKey(AdapterKey.sizes(ODD), "tokens", "weights")


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    found, expected = Adapter.load(saved(tmp_path), ODD, KEY), random_adapter(ODD, 24)
    assert (found.rank, found.canvas_tokens) == (24, 8)
    np.testing.assert_array_equal(found.mask, expected.mask)
    for one, other in zip(found.layers, expected.layers, strict=True):
        for name, low in one.items():
            np.testing.assert_array_equal(low.a.dense(), other[name].a.dense())
            np.testing.assert_array_equal(low.b.dense(), other[name].b.dense())


def test_a_matrix_of_zeros_stays_one() -> None:
    assert not Rounded.of(np.zeros((3, 4), np.float32)).dense().any()


def saved(folder: Path, rank: int = 24) -> Path:
    path = folder / "adapter.safetensors"
    random_adapter(ODD, rank).save(path, KEY)
    return path


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (attrs.evolve(KEY, shape=AdapterKey.sizes(QWEN2)), "a model with other sizes"),
        (attrs.evolve(KEY, tokenizer="others"), "a model with other tokens"),
        (attrs.evolve(KEY, weights="others"), "a model with other weights"),
    ],
)
def test_an_adapter_of_another_model_is_refused_in_one_line(tmp_path: Path, key: AdapterKey, reason: str) -> None:
    path = saved(tmp_path)
    with pytest.raises(ModelError, match=rf"^the adapter \S+ is not used: .*{reason}; the model runs without it$"):
        Adapter.load(path, ODD, key)


def change_tensor(path: Path, name: str, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> None:
    """Write a file again with one tensor changed, and the same metadata."""
    with safe_open(path, "numpy") as file:
        said = file.metadata()
    tensors = load_file(path)
    save_file({**tensors, name: np.ascontiguousarray(change(tensors[name]))}, path, said)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-100]), "."),
    "empty": (lambda path: path.write_bytes(b""), "."),
    "no safetensors": (lambda path: path.write_text("an adapter\n" * 9), "."),
    "no adapter": (lambda path: save_file({"mask": np.zeros(4)}, path), "it is no midspan adapter 1"),
    "another rank": (
        lambda path: change_tensor(path, "blocks.0.out.a", lambda found: found[:8]),
        r"blocks.0.out.a is \[8, 192\] in int8, not \[24, 192\]",
    ),
    "no number": (lambda path: change_tensor(path, "mask", lambda found: np.full_like(found, np.nan)), "not finite"),
    "no scale": (
        lambda path: change_tensor(path, "blocks.0.qkv.b.scale", lambda found: np.full_like(found, np.inf)),
        "not finite",
    ),
    "another width": (lambda path: change_tensor(path, "mask", lambda found: found[:5]), r"mask is \[5\]"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_adapter_is_refused_in_one_line(
    tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    path = saved(tmp_path)
    damage(path)
    with pytest.raises(ModelError, match=rf"^the adapter \S+ is not used: .*{reason}.*; the model runs without it$"):
        Adapter.load(path, ODD, KEY)


def test_a_rank_that_the_kernel_has_no_room_for_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, MOST_RANK + 1)
    with pytest.raises(ModelError, match="its rank is 65"):
        Adapter.load(path, ODD, KEY)
    Adapter.load(saved(tmp_path, MOST_RANK), ODD, KEY)
