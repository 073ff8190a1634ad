"""Left-to-right models with fill-in-the-middle prompts (Qwen2.5-Coder). A small diffusion model drafts their text, and
they verify each draft in one pass. `load.py` is the entry. It is imported with the first such model, because
transformers is slow to import."""
