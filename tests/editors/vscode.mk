# VS Code for the tests in tests/editors, and the tools that build its extension. The Makefile includes this file.
# npm checks all it fetches against the hashes in the package-lock.json files; both leave out the registry's address.
VSCODE := .editors/vscode
VSCODE_NODE = $(firstword $(wildcard $(CURDIR)/$(VSCODE)/node_modules/node-linux-*/bin))
EXTENSION := editors/vscode

.PHONY: editors-vscode vscode-extension vscode-dist vscode-check vscode-picture vscode-edit-pictures why-pictures

editors-vscode: $(VSCODE)/.installed $(EXTENSION)/node_modules/.installed
	@tests/editors/vscode/fetch_chromium

# code-server brings VS Code without its dependencies; its own shrinkwrap pins these. Its native modules are not built:
# what lacks without them is files on the disk for logs, and the terminal.
$(VSCODE)/.installed: tests/editors/vscode/package-lock.json
	@command -v npm >/dev/null || { echo "make editors needs npm: install Node.js 20 or newer" >&2; exit 1; }
	@mkdir -p $(VSCODE)
	cp tests/editors/vscode/package.json tests/editors/vscode/package-lock.json tests/editors/vscode/.npmrc $(VSCODE)
	cd $(VSCODE) && npm ci --loglevel=error
	cd $(VSCODE)/node_modules/code-server/lib/vscode && npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(EXTENSION)/node_modules/.installed: $(EXTENSION)/package-lock.json
	cd $(EXTENSION) && npm ci --loglevel=error
	@touch $@

vscode-check: editors-vscode
	cd $(EXTENSION) && PATH="$(VSCODE_NODE):$$PATH" npm run --silent check

vscode-extension: editors-vscode
	cd $(EXTENSION) && PATH="$(VSCODE_NODE):$$PATH" npm run --silent package

# The extension that people install: it carries the wheel in dist, so that its button Install needs no registry for Midspan.
vscode-dist: $(EXTENSION)/node_modules/.installed
	mkdir -p $(EXTENSION)/server && cp dist/*.whl $(EXTENSION)/server
	cd $(EXTENSION) && PATH="$(VSCODE_NODE):$$PATH" npm run --silent package -- --out $(CURDIR)/dist/midspan.vsix; \
		status=$$?; rm -rf $(CURDIR)/$(EXTENSION)/server; exit $$status

# The picture of the README: MODEL=path takes it with another model than the embedded one.
vscode-picture: setup editors-vscode
	$(BIN)/python tests/editors/take_picture.py $(MODEL)

# The pictures of the next edit and of the preview, in the README and in docs/refactor.md.
vscode-edit-pictures: setup editors-vscode
	$(BIN)/python tests/editors/take_vscode_edit_pictures.py

# The pictures of docs/memory.md: why a suggestion was shown, in Neovim and in VS Code.
why-pictures: setup editors-neovim editors-vscode
	$(BIN)/python tests/editors/take_why_pictures.py
