"""Masked diffusion families on stock transformers classes: Dream-Coder, DreamOn, DiffuCoder, Open-dCoder, dLLM's
converted Qwen, LLaDA. `load.py` is the way in; transformers is imported when a model is loaded, not before."""
