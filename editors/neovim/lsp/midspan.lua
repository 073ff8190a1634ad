-- Found by vim.lsp.config on the runtimepath, so that a plain vim.lsp.enable('midspan') works without setup() too.
return require('midspan.client').config()
