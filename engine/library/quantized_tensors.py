"""Which tensors of a released checkpoint are held in few bits; free of torch.

All matrices of the layers, the experts' among them: they are nearly all of a model. Embedding, head and router stay as
they are, since each of their errors moves every token; norms and biases are too small to matter.
"""

import re
from collections.abc import Sequence

SIDE = 16
"""Kernels take matrices whose sides are multiples of this; all released ones are."""
_IN_A_LAYER = re.compile(r"\.(?:layers|blocks)\.\d+\.")
_IMAGES = ("vision_tower.", "embed_vision.")
_ROUTER = ".router."


def is_quantized(name: str, shape: Sequence[int]) -> bool:
    """Tell whether the tensor is a matrix [out, in], or a stack of them, that can be held in few bits."""
    if len(shape) < 2 or _ROUTER in name or not _IN_A_LAYER.search(name):
        return False
    return shape[-1] % SIDE == 0 and shape[-2] % SIDE == 0


def is_of_images(name: str) -> bool:
    """Tell whether the tensor is of the half that looks at images, which is never loaded."""
    return any(part in name for part in _IMAGES)
