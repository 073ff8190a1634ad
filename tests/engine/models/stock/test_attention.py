"""Attention in parts, without repeated keys. Released shapes are counted on the device "meta", without memory."""

import pytest
import torch
from support.counted import Counted
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from engine.models.cuda_graphs.slots import LayerShape
from engine.models.diffusion_gemma.layers import ContextSegment, RollingContext, SegmentAttention
from engine.models.stock import attention
from engine.models.stock.attention import MOST_SCORES, CausalRows, attend

META = torch.device("meta")
SHAPES = [(4, 4, 8), (6, 2, 8), (8, 1, 16)]


def reference(query: Tensor, keys: Tensor, values: Tensor, causal: CausalRows | None) -> Tensor:
    """Return the mixed values as torch gives them for grouped queries and one mask."""
    mask = None
    if causal is not None:
        positions = torch.arange(causal.first, causal.first + keys.shape[1])
        own = torch.arange(causal.start, causal.start + query.shape[1])[:, None]
        mask = (positions <= own) & (positions > own - (causal.window or 1 << 30))
    mixed = F.scaled_dot_product_attention(query[None], keys[None], values[None], mask, scale=0.3, enable_gqa=True)
    return mixed[0].transpose(0, 1)


@pytest.mark.parametrize(("heads", "key_heads", "width"), SHAPES)
@pytest.mark.parametrize("most_scores", [MOST_SCORES, 700, 1])
def test_rows_in_parts_give_what_all_rows_at_once_give(
    heads: int, key_heads: int, width: int, most_scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "MOST_SCORES", most_scores)
    generator = torch.Generator().manual_seed(4)
    for rows, start, window in ((1, 0, None), (1, 30, 5), (13, 0, None), (13, 9, None), (40, 25, 7), (40, 0, 7)):
        first = 0 if window is None else max(0, start - window + 1)
        query = torch.randn(heads, rows, width, generator=generator)
        keys, values = torch.randn(2, key_heads, start + rows - first, width, generator=generator)
        for causal in (None, CausalRows(start, first, window)):
            found = attend(query, keys, values, 0.3, causal)
            assert torch.allclose(found, reference(query, keys, values, causal), atol=1e-5)


def test_no_rows_give_no_rows() -> None:
    assert attend(torch.empty(4, 0, 8), torch.empty(2, 3, 8), torch.empty(2, 3, 8), 1.0).shape == (0, 4, 8)


@pytest.mark.parametrize("context", [4096, 100_000])
@pytest.mark.parametrize(
    ("heads", "key_heads", "width", "window"),
    [
        pytest.param(16, 2, 512, None, id="gemma-full"),
        pytest.param(16, 8, 256, 1024, id="gemma-sliding"),
        pytest.param(28, 4, 128, None, id="qwen-7b"),
    ],
)
def test_reading_a_long_context_never_holds_more_scores_than_allowed(
    heads: int, key_heads: int, width: int, window: int | None, context: int
) -> None:
    """Torch's plain attention holds all scores; on "meta" it is the one that is counted. 4,096 rows are one piece."""
    rows = 4096
    # Torch's plain kernel is the one that holds scores; in inference mode the operator would be counted as one.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        stored = RollingContext([LayerShape(key_heads, width)], torch.bfloat16, META)
        stored.reserve(context + rows)
        mixer = SegmentAttention([ContextSegment(stored, context, 0, rows)], causal=True)
        query = torch.empty(rows, heads, width, dtype=torch.bfloat16, device=META)
        key, value = torch.empty(2, rows, key_heads, width, dtype=torch.bfloat16, device=META)
        with Counted() as count:
            assert mixer.mix(0, query, key, value, 1.0, window).shape == query.shape
    in_fp32 = 4 * key_heads * (context + rows) * width  # that kernel also takes the keys in fp32
    assert count.largest <= max(4 * MOST_SCORES, in_fp32)
    assert "repeat_interleave" not in count.calls
    assert count.waits == []
