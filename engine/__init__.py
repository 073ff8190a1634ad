"""The resident engine of Midspan: fills holes in code with a diffusion language model."""

__version__ = "0.1.0"
"""The only place of the version in Python; pyproject.toml reads it from here. So this module imports nothing."""
