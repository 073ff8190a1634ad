"""The resident engine of Midspan: fills holes in code with a diffusion language model."""

__version__ = "0.1.0"
