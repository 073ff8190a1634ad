-- vim.lsp.config finds this file on the runtimepath. So vim.lsp.enable('midspan') works without setup().
return require('midspan.client').config()
