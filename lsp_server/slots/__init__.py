"""Slots: stubs, missing annotations and missing docstrings, found by syntax and filled all at once."""
