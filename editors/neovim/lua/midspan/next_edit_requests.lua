--- When the server is asked for the next edit: after a change, when insert mode ends, and after an edit was accepted.

local client_of = require('midspan.client')
local next_edit_offer = require('midspan.next_edit_offer')
local toggle = require('midspan.toggle')

local M = {}

local NEXT_EDIT = 'textDocument/copilotInlineEdit'
local PAUSE_MS = 50

---@class midspan.Question
---@field client vim.lsp.Client
---@field request? integer
---@field buf integer
---@field tick integer

--- The question that was asked last, answered or not.
---@type midspan.Question?
local last

local timer = assert(vim.uv.new_timer())
local is_on = true

---@param buf integer
---@return boolean
local function is_served(buf)
  return is_on and buf == vim.api.nvim_get_current_buf() and not toggle.is_off_in(buf)
end

local function cancel()
  if last and last.request then
    last.client:cancel_request(last.request)
  end
  last = nil
end

--- Ask for the next edit, unless it was asked for this text.
---@param buf integer
function M.ask(buf)
  local client = is_served(buf) and client_of.of(buf)
  local tick = vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_buf_get_changedtick(buf)
  if not client or (last and last.buf == buf and last.tick == tick) then
    return
  end
  timer:stop()
  cancel()
  local question = { client = client, buf = buf, tick = tick } ---@type midspan.Question
  last = question
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local document = { uri = params.textDocument.uri, version = vim.lsp.util.buf_versions[buf] }
  local request = { textDocument = document, position = params.position, anyFile = true }
  local sent, id = client:request(NEXT_EDIT, request, function(_, result)
    question.request = nil
    -- An error means no next edit; the user can do nothing about it.
    if last == question and is_on and vim.api.nvim_buf_is_valid(buf) then
      local is_current = vim.api.nvim_buf_get_changedtick(buf) == tick
      next_edit_offer.show(client, is_current and result and result.edits[1] or nil)
    end
  end, buf)
  question.request = sent and id or nil
end

--- Ask for the next edit, also if it was asked for this text before.
function M.ask_again()
  cancel()
  M.ask(vim.api.nvim_get_current_buf())
end

---@param buf integer
local function changed(buf)
  next_edit_offer.hide_if_stale(buf)
  timer:stop()
  timer:start(
    PAUSE_MS,
    0,
    vim.schedule_wrap(function()
      M.ask(buf)
    end)
  )
end

--- Turn the next edit on or off, until Neovim ends.
---@param on boolean
function M.switch(on)
  is_on = on
  timer:stop()
  cancel()
  if not on then
    next_edit_offer.hide()
  end
end

--- Follow what happens in all buffers.
function M.start()
  local group = vim.api.nvim_create_augroup('midspan.next_edit', { clear = true })
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, {
      group = group,
      callback = function(event)
        callback(event.buf)
      end,
    })
  end
  on({ 'TextChanged', 'TextChangedI' }, changed)
  on('InsertLeave', M.ask)
  on({ 'CursorMoved', 'CursorMovedI', 'WinScrolled', 'BufEnter' }, next_edit_offer.follow_cursor)
  on('BufUnload', next_edit_offer.hide_in)
end

return M
