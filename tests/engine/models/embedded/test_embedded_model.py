"""Loading models, laying holes out, and giving text back."""

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import get_args

import attrs
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.embedded_models import load_embedded
from support.sources import source_paths

from engine.errors import ModelError
from engine.fill.stream import StreamPass
from engine.models.embedded.layout import Anchor, Limits, SpecialTokens, lay_out, short_path
from engine.models.embedded.model import EmbeddedModel
from engine.models.load import load
from engine.protocol.messages import Fill, Snippet
from engine.schedule.caches import ContextCache, common_prefix

MARKS = SpecialTokens(pad=0, suffix=1, prefix=2, tail=3, middle=4, end=5, mask=6, file=7)


@pytest.fixture(scope="module")
def family(tiny_model: Path) -> EmbeddedModel:
    return loaded(tiny_model)


def loaded(folder: Path) -> EmbeddedModel:
    model = load(str(folder), threads=1, device="cpu")
    assert isinstance(model, EmbeddedModel)
    return model


class Characters:
    """One token a character."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, text: str) -> list[int]:
        self.read.append(text)
        return [100 + ord(character) for character in text]

    def starts_line(self, token: int) -> bool:
        return token == 100 + ord("\n")


ENCODE = Characters()


def limits(stream: int, below: int, related: int = 0) -> Limits:
    return Limits(stream, below, 10, 10, path=24, near=20, near_stride=10, line_stride=2, related=related)


def test_the_lines_below_come_first_and_the_rest_of_the_line_last() -> None:
    stream = lay_out(ENCODE, MARKS, limits(100, 20), "a = f(", ")\nb\nc\nd", "", [])
    far, near = ENCODE("\nc\nd"), ENCODE("\nb")
    assert stream.tokens == [1, *far, 1, *near, 2, *ENCODE("a = f("), 3, *ENCODE(")")]
    assert stream.tokens[stream.near] == ENCODE("a = f(")
    assert stream.anchor == MARKS.middle


@pytest.mark.parametrize("suffix", ["\nb\nc\nd", "  \nb\nc\nd"])
def test_at_the_end_of_a_line_the_middle_goes_on_where_the_code_above_ends(suffix: str) -> None:
    stream = lay_out(ENCODE, MARKS, limits(100, 20), "a = f(", suffix, "", [], "text")
    far, near, *above = ENCODE("\nc\nd"), ENCODE("\nb"), *ENCODE("a = f(")
    tokens = [1, *far, 1, *near, 2, *above]
    assert [*stream.tokens, stream.anchor] == tokens
    assert tokens[stream.near] == above
    empty = lay_out(ENCODE, MARKS, limits(100, 20), "", "", "", [], "text")
    assert (empty.anchor, empty.near.start) == (MARKS.prefix, empty.near.stop)


def test_before_code_of_its_line_a_middle_follows_that_code_and_a_mark() -> None:
    text, mark = (lay_out(ENCODE, MARKS, limits(100, 20), "a = f(", ")\nb", "", [], each) for each in get_args(Anchor))
    assert text == mark
    assert text.anchor == MARKS.middle


def test_path_and_snippets_come_before_the_code_the_best_next_to_it() -> None:
    snippets = [Snippet("r.py", "S"), Snippet("t.py", "U")]
    stream = lay_out(ENCODE, MARKS, limits(250, 20, related=120), "x", "", "home/me/p/q.py", snippets)
    named = [7, *ENCODE("t.py\nU"), 7, *ENCODE("r.py\nS"), 7, *ENCODE("me/p/q.py\n")]
    assert stream.tokens == [*named, 1, 1, 2, *ENCODE("x"), 3]
    assert short_path("C:\\a\\b\\c\\d.py") == "b/c/d.py"


def test_a_snippet_that_is_too_long_is_cut_to_whole_lines_without_tokenizing_it() -> None:
    encode = Characters()
    snippets = [Snippet("large.py", "one\ntwo\n" + "y" * 4_000_000), Snippet("small.py", "S" * 40)]
    stream = lay_out(encode, MARKS, limits(250, 20, related=130), "x", "", "q.py", snippets)
    related = [7, *ENCODE("small.py\n" + "S" * 40), 7, *ENCODE("large.py\none\ntwo")]
    assert stream.tokens[: len(related)] == related
    assert max(map(len, encode.read)) < 2000


def test_without_room_for_related_code_snippets_are_left_out() -> None:
    stream = lay_out(ENCODE, MARKS, limits(250, 20), "x", "", "", [Snippet("r.py", "S")])
    assert stream.tokens == [1, 1, 2, *ENCODE("x"), 3]


def test_typing_in_a_long_file_leaves_the_left_edge_where_it_is() -> None:
    texts = ["y" * length for length in range(300, 400)]
    streams = [lay_out(ENCODE, MARKS, limits(120, 20), text, "", "", []).tokens for text in texts]
    assert all(len(tokens) <= 120 for tokens in streams)
    kept = [common_prefix(one, other) / len(one) for one, other in pairwise(streams)]
    assert sum(share > 0.95 for share in kept) >= 80


def test_a_cursor_that_moves_down_a_line_changes_only_what_is_near() -> None:
    lines = [f"line {number} of the file\n" for number in range(100)]
    wide = Limits(600, 100, lines_below=60, tail=20, path=24, near=100, near_stride=60, line_stride=8)
    streams = []
    for at in range(40, 60):
        prefix, suffix = "".join(lines[:at]), "".join(lines[at:])
        streams.append(lay_out(ENCODE, MARKS, wide, prefix, suffix, "", []).tokens)
    kept = sorted(common_prefix(one, other) / len(one) for one, other in pairwise(streams))
    assert kept[len(kept) // 2] > 0.5, "half of the moves keep more than half of the context"


def test_the_context_grows_and_falls_back_exactly(family: EmbeddedModel) -> None:
    fill = Fill(id=1, prefix="def f(a, b):\n    return a", suffix="\n")
    layout = family.lay_out(fill)
    tokens = [*layout.context, layout.anchor]
    whole = family.new_context()
    (expected,) = family.logits([StreamPass(whole, tokens, [], [len(tokens) - 1])])
    pieces = family.new_context()
    family.logits([StreamPass(pieces, tokens[:5], [], [])])
    family.logits([StreamPass(pieces, [*tokens[5:9], 40, 41], [family.mask] * 4, [0])])
    pieces.truncate(9)
    (found,) = family.logits([StreamPass(pieces, tokens[9:], [family.mask] * 3, [len(tokens) - 10])])
    assert pieces.tokens == tokens
    assert np.allclose(expected, found, atol=1e-4)


def test_the_cache_keeps_within_its_bound_and_copies_what_two_holes_share(family: EmbeddedModel) -> None:
    one = family.new_context()
    family.logits([StreamPass(one, [9, 1, 2, 3], [], [])])
    size = one.bytes
    cache = ContextCache(family, max_bytes=2 * size)
    for start in (10, 20, 30):
        context = cache.take([start, 1, 2, 3])
        family.logits([StreamPass(context, [start, 1, 2, 3], [], [])])
        cache.give_back(context)
    assert cache.bytes == 2 * size
    assert cache.take([10, 1, 2, 3]).tokens == []
    fork = cache.take([20, 9])
    assert fork.tokens == [20]
    assert cache.take([20, 1, 2, 3, 4]).tokens == [20, 1, 2, 3]


def test_tokens_give_back_the_text_also_across_split_characters(family: EmbeddedModel) -> None:
    text = "naïve = '日本語 🙂'\n\treturn"
    encode = family._encode
    assert "".join(family.texts_of(encode(text))) == text


def test_line_by_line_encoding_equals_encoding_at_once(family: EmbeddedModel) -> None:
    text = source_paths()[3].read_text()
    whole = family.tokenizer.encode(text, add_special_tokens=False).ids
    assert family._encode(text) == whole


def broken(tiny_model: Path, folder: Path, name: str, content: bytes | None) -> Path:
    shutil.copytree(tiny_model, folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.json", None, "config.json"),
        ("config.json", b"{", "not valid JSON"),
        ("config.json", json.dumps({"family": "gpt"}).encode(), "family 'gpt'"),
        ("config.json", json.dumps({"family": "midspan"}).encode(), "cannot be read"),
        ("config.json", b"[" * 200_000, "nested too deeply"),
        ("config.json", b'{"family": "midspan", "shape": ' + b"[" * 200_000, "nested too deeply"),
        ("model.safetensors", None, "model.safetensors"),
        ("model.safetensors", b"\x00" * 100, "damaged"),
        ("tokenizer.json", b"nonsense", "cannot be read"),
    ],
)
def test_a_damaged_model_is_told_in_one_line(
    tiny_model: Path, tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    folder = broken(tiny_model, tmp_path / "model", name, content)
    with pytest.raises(ModelError) as caught:
        load(str(folder))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_of_another_shape_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    config = json.loads((tiny_model / "config.json").read_text())
    config["shape"]["width"] = 128
    folder = broken(tiny_model, tmp_path / "model", "config.json", json.dumps(config).encode())
    with pytest.raises(ModelError, match="do not fit"):
        load(str(folder))


@pytest.mark.parametrize(
    "change",
    [
        {"heads": 0},
        {"heads": -2},
        {"heads": 3},
        {"width": 0},
        {"layers": 10**12},
        {"context_tokens": 2**62},
        {"context_tokens": 0},
        {"vocabulary": 8},
        {"key_heads": 3},
        {"head_width": 8},
        {"hidden": 100},
        {"norm_epsilon": 0.0},
        {"rope_base": float("nan")},
        {"rope_base": 0.0},
    ],
    ids=str,
)
def test_sizes_that_no_network_has_are_refused(tiny_model: Path, tmp_path: Path, change: dict[str, float]) -> None:
    config = json.loads((tiny_model / "config.json").read_text())
    config["shape"].update(change)
    folder = broken(tiny_model, tmp_path / "model", "config.json", json.dumps(config).encode())
    with pytest.raises(ModelError) as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)


def test_a_special_token_without_a_row_in_the_network_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    config = json.loads((tiny_model / "config.json").read_text())
    config["marks"]["mask"] = config["shape"]["vocabulary"]
    folder = broken(tiny_model, tmp_path / "model", "config.json", json.dumps(config).encode())
    with pytest.raises(ModelError, match="token"):
        load(str(folder))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system there")
def test_a_config_that_is_a_pipe_or_a_device_is_refused_at_once(tiny_model: Path, tmp_path: Path) -> None:
    pipe = broken(tiny_model, tmp_path / "pipe", "config.json", None)
    os.mkfifo(pipe / "config.json")
    device = broken(tiny_model, tmp_path / "device", "config.json", None)
    (device / "config.json").symlink_to("/dev/zero")
    for folder in (pipe, device):
        with pytest.raises(ModelError, match="it is not a file"):
            load(str(folder))


def test_weights_that_are_no_numbers_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = broken(tiny_model, tmp_path / "model", "model.safetensors", b"")
    weights = load_file(tiny_model / "model.safetensors")
    weights["norm.weight"][3] = np.nan
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"norm\.weight holds numbers that are not finite"):
        load(str(folder))


def test_an_unknown_model_and_an_unknown_device_are_refused(tiny_model: Path) -> None:
    with pytest.raises(ModelError, match="neither"):
        load("no-such-model")
    with pytest.raises(ModelError, match="unknown device"):
        load(str(tiny_model), device="tpu")


def test_a_carriage_return_changes_nothing_for_the_model(family: EmbeddedModel) -> None:
    fill = Fill(id=1, prefix="a = 1\nb = ", suffix="\nc\n")
    dos = attrs.evolve(fill, prefix="a = 1\r\nb = ", suffix="\r\nc\r\n")
    assert family.lay_out(dos) == family.lay_out(fill)


def test_bf16_gives_nearly_the_same_predictions(tiny_model: Path) -> None:
    exact, half = load_embedded(tiny_model, "fp32"), load_embedded(tiny_model, "bf16")
    assert [exact.info.dtype, half.info.dtype] == ["float32", "bfloat16"]
    tokens = exact.lay_out(Fill(id=1, prefix="def f(a, b):\n    return a", suffix="\n")).context
    found = []
    for family in (exact, half):
        rows = StreamPass(family.new_context(), tokens, [family.mask] * 3, list(range(len(tokens) + 3)))
        (logits,) = family.logits([rows])
        found.append(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))
    assert (np.exp(found[0]) * (found[0] - found[1])).sum(-1).mean() < 0.05
