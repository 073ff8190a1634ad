"""DiffusionGemma (google/diffusiongemma-26B-A4B-it and its kin), filling holes on a canvas that ends in the suffix.

transformers is imported when such a model is loaded, and not before: the embedded model starts without it.
"""

from engine.models.diffusion_gemma.loading import MODEL_TYPE, load

__all__ = ["MODEL_TYPE", "load"]
