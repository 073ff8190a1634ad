"""Left-to-right models that others trained, and how they fill holes: their prompts, where a text ends, verified drafts.

In the kernel `load.py` is the entry: a GGUF, or safetensors of a Llama, Qwen2 or Qwen3. In torch it is `torch_load.py`,
with a diffusion model as the drafter, imported with the first such model because transformers is slow to import.
"""
