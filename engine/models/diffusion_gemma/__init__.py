"""DiffusionGemma (google/diffusiongemma-26B-A4B-it and related models). The canvas of a hole ends with the suffix.

transformers is imported only when such a model is loaded, because the embedded model must start without it.
"""

from engine.models.diffusion_gemma.loading import load

__all__ = ["load"]
