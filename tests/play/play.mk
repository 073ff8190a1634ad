# The page of `midspan play`: what builds it, and what its tests drive it with. The Makefile includes this file.
PLAY := .editors/play

.PHONY: editors-play play-page play-pictures

editors-play: $(PLAY)/.installed editors/play/node_modules/.installed
	@tests/editors/vscode/fetch_chromium

$(PLAY)/.installed: tests/play/chromium/package-lock.json
	@command -v npm >/dev/null || { echo "make editors needs npm: install Node.js 20 or newer" >&2; exit 1; }
	@mkdir -p $(PLAY)
	cp tests/play/chromium/package.json tests/play/chromium/package-lock.json tests/play/chromium/.npmrc $(PLAY)
	cd $(PLAY) && npm ci --loglevel=error
	@touch $@

editors/play/node_modules/.installed: editors/play/package-lock.json
	cd editors/play && npm ci --loglevel=error
	@touch $@

# The page as the wheel has it, in engine/play/page. It is committed; a test builds it again and compares.
play-page: editors/play/node_modules/.installed
	cd editors/play && npm run --silent check && npm run --silent build

# The pictures of README.md and docs/play.md.
play-pictures: setup editors-play
	$(BIN)/python tests/play/take_pictures.py
