"""Masked diffusion models on the classes of transformers: Dream-Coder, DreamOn, DiffuCoder, Open-dCoder, dLLM's
converted Qwen, LLaDA, CoDA. `load.py` is the entry. It is imported with the first such model, because transformers is
slow to import."""
