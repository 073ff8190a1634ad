--- The window of the preview, with a buffer that has no file.

local M = {}

---@class midspan.PreviewEvents
---@field write fun() the user saves
---@field wiped fun() the window is closed

--- Open the window below all others, and return its buffer. Only this window with this buffer gets our options.
---@param on midspan.PreviewEvents
---@return integer buf
function M.open(on)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, 'midspan://preview')
  -- acwrite is the one kind of buffer without a file that :w may write.
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].undolevels = 'acwrite', 'wipe', -1
  local height = math.max(8, math.floor(vim.o.lines * 2 / 3))
  local window = vim.api.nvim_open_win(buf, true, { split = 'below', win = -1, height = height })
  local options = vim.wo[window][0]
  options.wrap, options.number, options.relativenumber, options.list, options.spell = false, false, false, false, false
  options.foldmethod, options.foldenable, options.cursorline, options.signcolumn = 'manual', true, true, 'no'
  vim.bo[buf].filetype = 'midspan-preview'
  vim.api.nvim_create_autocmd('BufWriteCmd', { buffer = buf, callback = on.write })
  vim.api.nvim_create_autocmd('BufWipeout', { buffer = buf, callback = on.wiped })
  return buf
end

return M
