# Neovim and Helix for the tests in tests/editors, fetched into .editors/. The Makefile includes this file.
.PHONY: editors-neovim

editors-neovim: setup
	@$(BIN)/python tests/editors/fetch_neovim.py
