--- Tells the server where the cursor rests, so that a slow model reads the text there before the first suggestion.

local client_of = require('midspan.client')
local toggle = require('midspan.toggle')

local M = {}

local CURSOR_MOVED = 'midspan/cursorMoved'
--- Milliseconds: a cursor that passes a place is not to cost anything.
local PAUSE_MS = 150

local timer = assert(vim.uv.new_timer())

---@param buf integer
local function tell(buf)
  if buf ~= vim.api.nvim_get_current_buf() or toggle.is_off_in(buf) then
    return
  end
  local client = client_of.of(buf)
  if client and toggle.is_automatic(client) then
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    client:notify(CURSOR_MOVED, { textDocument = params.textDocument, position = params.position }, buf)
  end
end

---@param buf integer
local function moved(buf)
  timer:stop()
  timer:start(
    PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      tell(buf)
    end)
  )
end

--- Follow the cursor in a buffer. While the user types, each request says where the cursor is.
---@param buf integer
function M.follow(buf)
  local group = vim.api.nvim_create_augroup('midspan.cursor', { clear = false })
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'WinEnter', 'CursorMoved' }, {
    group = group,
    buffer = buf,
    callback = function()
      moved(buf)
    end,
  })
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'BufLeave', 'BufUnload' }, {
    group = group,
    buffer = buf,
    callback = function()
      timer:stop()
    end,
  })
  moved(buf)
end

return M
