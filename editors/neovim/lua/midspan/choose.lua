--- Asking by hand, and going through the candidates.

local client_of = require('midspan.client')
local ghost = require('midspan.ghost')

local M = {}

--- Ask for a suggestion now. It comes after Neovim's own pause of 200 ms.
---@return boolean
function M.trigger()
  local buf = vim.api.nvim_get_current_buf()
  if not client_of.of(buf) then
    return false
  end
  client_of.invoke(buf)
  vim.schedule(function()
    -- Neovim has no call for it; what it listens to is this event.
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = buf, modeline = false })
  end)
  return true
end

--- Show the candidate `count` further on; where there is but one, ask for more.
---@param count integer
---@return boolean
function M.step(count)
  local shown = ghost.shown()
  if not shown then
    return false
  end
  if shown.count == 1 then
    return M.trigger()
  end
  vim.schedule(function()
    vim.lsp.inline_completion.select({ count = count })
  end)
  return true
end

return M
