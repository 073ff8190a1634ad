"""Which tensors of a released checkpoint can be quantized. Does not import torch.

These are the matrices of the layers, including those of experts: nearly all of a model. Embedding, head and router keep
their precision because their errors affect every token. Norms and biases are too small to matter.
"""

import re
from collections.abc import Sequence

SIDE = 16
"""The kernels need matrices whose sides are multiples of this. All released models have such matrices."""
_IN_A_LAYER = re.compile(r"\.(?:layers|blocks)\.\d+\.")
_IMAGE_PARTS = ("vision_tower.", "embed_vision.")
_ROUTER = ".router."


def is_quantized(name: str, shape: Sequence[int]) -> bool:
    """Tell whether a tensor can be quantized: a matrix [out, in] of a layer, or a stack of such matrices."""
    if len(shape) < 2 or _ROUTER in name or not _IN_A_LAYER.search(name):
        return False
    return shape[-1] % SIDE == 0 and shape[-2] % SIDE == 0


def is_image_tensor(name: str) -> bool:
    """Tell whether a tensor belongs to the image encoder, which is never loaded."""
    return any(part in name for part in _IMAGE_PARTS)
