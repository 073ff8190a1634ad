# Neovim and Helix for the tests in tests/editors, fetched into .editors/. The Makefile includes this file.
.PHONY: editors-neovim demo-picture edit-pictures

editors-neovim: setup
	@$(BIN)/python tests/editors/fetch_neovim.py

demo-picture: editors-neovim
	@$(BIN)/python tests/editors/record_demo.py

edit-pictures: editors-neovim
	@$(BIN)/python tests/editors/take_edit_pictures.py
