# Neovim and Helix for the tests in tests/editors, fetched into .editors/. The Makefile includes this file.
.PHONY: editors-neovim editors-lazy demo-picture edit-pictures

editors-neovim: setup
	@$(BIN)/python tests/editors/fetch_neovim.py

# lazy.nvim is in no package; without it, two tests of the plugin's README are skipped. `make editors` does not fetch it.
editors-lazy:
	git clone --quiet --depth 1 https://github.com/folke/lazy.nvim .editors/lazy.nvim

demo-picture: editors-neovim
	@$(BIN)/python tests/editors/record_demo.py

edit-pictures: editors-neovim
	@$(BIN)/python tests/editors/take_edit_pictures.py
