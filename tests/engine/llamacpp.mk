# llama.cpp's server for tests/engine/remote/test_remote_llamacpp.py, fetched into .editors/. The Makefile includes this file.
.PHONY: llamacpp

llamacpp: setup
	@$(BIN)/python tests/engine/fetch_llamacpp.py
