"""A head with frequent tokens only: the same predictions, as far as it has the tokens."""

from pathlib import Path

import numpy as np
import pytest
from support.coder import coder_or_skip
from support.gguf_files import SHAPES, tiny_network
from support.kernel_passes import skip_without

from engine.errors import ModelError
from engine.fill.sampler import Query
from engine.fill.stream import StreamPass
from engine.library.gguf_file import read_header
from engine.models.left_to_right import frequent
from engine.models.left_to_right.frequent import frequent_tokens, save_frequent
from engine.models.left_to_right.gguf_tokenizer import tokenizer_of_header
from engine.models.left_to_right.load import load_gguf
from engine.models.stock.token_bytes import token_texts

READ = [5, 9, 30, 77, 120, 200]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(frequent, "FOLDER", tmp_path / "frequent")
    return tmp_path / "frequent"


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("kernel", ["plain", "numpy"])
def test_a_head_with_some_tokens_predicts_them_as_the_whole_one(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, kernel: str
) -> None:
    if kernel != "numpy":
        skip_without(kernel)
    monkeypatch.setenv("MIDSPAN_KERNEL", kernel)
    monkeypatch.setattr(frequent, "_is_ascii", lambda text: False)  # Nearly all tokens of so small a vocabulary are.
    path = tiny_network(kind).save_gguf(tmp_path / "tiny.gguf")
    whole = load_gguf(path, 1)
    counts = np.zeros(whole.tokenizer.get_vocab_size(), np.int64)
    counts[::3] = 1
    save_frequent(whole.tokenizer, counts, int(counts.sum()), folder)
    some = load_gguf(path, 1)
    kept = frequent_tokens(token_texts(some.tokenizer), some.specials.ends, len(counts))
    assert kept is not None
    assert set(some.specials.ends) <= set(kept.tolist())
    assert some.info.parameters == whole.info.parameters
    lacking = next(token for token in range(len(counts)) if token not in kept)
    named = np.tile(np.array([*kept[:5], lacking]), (len(READ), 1))
    compatible = [int(kept[3]), lacking, int(kept[8])]
    for query in (Query(3, named=named), Query(2, compatible_tokens=compatible)):
        expected, found = (
            model.run([StreamPass(model.new_context(), READ, [], range(len(READ)), query)])[0].predictions
            for model in (whole, some)
        )
        assert set(found.tokens.ravel().tolist()) <= set(kept.tolist())
        if query.named is not None:
            assert (found.named[:, -1] == 0).all()
            shares = [each.named[:, :5] / each.named[:, :5].sum(1, keepdims=True) for each in (expected, found)]
            np.testing.assert_allclose(shares[0], shares[1], rtol=1e-3, atol=1e-6)
        else:
            assert set(found.tokens[0].tolist()) == {compatible[0], compatible[2]}


def test_another_tokenizer_has_the_whole_head(tmp_path: Path, folder: Path) -> None:
    model = load_gguf(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), 1)
    assert frequent_tokens(token_texts(model.tokenizer), (1,), 500) is None
    save_frequent(model.tokenizer, np.ones(500, np.int64), 10, folder)
    model.tokenizer.add_tokens(["another"])
    assert frequent_tokens(token_texts(model.tokenizer), (1,), 500) is not None, "added tokens do not count"


def test_a_damaged_file_of_ours_is_one_line(tmp_path: Path, folder: Path) -> None:
    model = load_gguf(tiny_network("qwen2").save_gguf(tmp_path / "tiny.gguf"), 1)
    save_frequent(model.tokenizer, np.ones(500, np.int64), 10, folder)
    (written,) = folder.iterdir()
    written.write_bytes(b"no safetensors")
    with pytest.raises(ModelError, match=r"is damaged .*; install Midspan again"):
        frequent_tokens(token_texts(model.tokenizer), (1,), 500)


def test_the_shipped_tokens_are_of_qwens_tokenizer() -> None:
    tokenizer = tokenizer_of_header(read_header(coder_or_skip()))
    kept = frequent_tokens(token_texts(tokenizer), (151_643,), 151_936)
    assert kept is not None
    assert 99_000 < len(kept) < 100_000
    single = {token for text, token in tokenizer.get_vocab().items() if len(text) == 1}
    assert single <= set(kept.tolist())
    code = "def total(values: list[int]) -> int:\n    return sum(value for value in values if value > 0)\n"
    assert set(tokenizer.encode(code).ids) <= set(kept.tolist())
    assert tokenizer.token_to_id(".quantity") in kept, "a name that was in no code that was counted"
