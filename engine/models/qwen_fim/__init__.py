"""Left-to-right models that know fill-in-the-middle prompts (Qwen2.5-Coder): a small diffusion model drafts what they
would write, and they verify each draft in one pass. `load.py` is the way in; transformers is imported when a model is
loaded, not before."""
