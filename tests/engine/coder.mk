# Qwen2.5-Coder 0.5B with its own weights, for tests and figures. The Makefile includes this file.
.PHONY: coder

coder: setup
	@$(BIN)/python tests/engine/fetch_coder.py
