--- Asking for a suggestion by hand, and showing other candidates.

local client_of = require('midspan.client')
local ghost = require('midspan.ghost')

local M = {}

--- Ask for a suggestion now. Neovim itself waits 200 ms before it sends the request.
---@return boolean
function M.trigger()
  local buf = vim.api.nvim_get_current_buf()
  if not client_of.of(buf) then
    return false
  end
  client_of.invoke(buf)
  vim.schedule(function()
    -- Neovim has no function for this; it sends a request after this event.
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = buf, modeline = false })
  end)
  return true
end

--- Show the candidate that is `count` further in the list. If there is only one, ask for more.
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
