"""Commit rules: which proposals of a denoising step become tokens. They know nothing of any network."""
