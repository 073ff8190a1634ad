# The kernel's paths for ARM, built for it and run in an emulator. The Makefile includes this file.
.PHONY: neon test-neon

neon: setup
	@$(BIN)/python tests/engine/fetch_neon.py

test-neon: setup
	@$(BIN)/python tests/engine/run_neon.py
