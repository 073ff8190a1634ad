--- The last lines of the server's log, for `:Midspan log`. They hold no code of the user.

local M = {}

local MOST_LINES = 1000
local NAMES = { 'error', 'warning', 'info', 'log', 'debug' }

---@type string[]
local lines = {}

---@param message lsp.LogMessageParams
function M.add(message)
  for _, line in ipairs(vim.split(message.message, '\n', { plain = true })) do
    table.insert(lines, ('%s %s %s'):format(os.date('%H:%M:%S'), NAMES[message.type] or 'log', line))
  end
  if #lines > MOST_LINES then
    lines = vim.list_slice(lines, #lines - MOST_LINES + 1)
  end
end

--- Open the log in a window of its own.
function M.open()
  vim.cmd.new()
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  -- A server that cannot start writes only to stderr, which Neovim keeps.
  local empty = ('Nothing is logged yet; if the server did not start, see %s'):format(vim.lsp.log.get_filename())
  vim.api.nvim_buf_set_lines(0, 0, -1, false, #lines > 0 and lines or { empty })
  vim.bo.modifiable = false
  vim.cmd.normal({ 'G', bang = true })
end

return M
