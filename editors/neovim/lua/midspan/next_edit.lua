--- The next edit: the place where the user's last edit fits too. It is shown, jumped to, accepted and dismissed.

local client_of = require('midspan.client')
local config = require('midspan.config')
local held_keys = require('midspan.held_keys')
local mark = require('midspan.next_edit_mark')
local tell = require('midspan.tell')

local M = {}

local SHOWN = 'textDocument/didShowInlineEdit'
local DISMISSED = 'midspan.nextEditDismissed'

---@class midspan.NextEdit as the server has it
---@field text string
---@field range lsp.Range
---@field textDocument { uri: string, version?: integer }
---@field command lsp.Command
---@field remaining integer

---@class midspan.Offer
---@field client vim.lsp.Client
---@field edit midspan.NextEdit
---@field buf integer may not be loaded
---@field tick? integer the text that the edit is for; nil until the buffer is loaded
---@field change? midspan.Change nil until the buffer is loaded

---@type midspan.Offer?
local offer

--- What gives back the keys that are held, by buffer.
---@type table<integer, fun()>
local held = {}

--- Hide the next edit, and give back its keys. Returns false if none is shown.
---@return boolean
function M.hide()
  if not offer then
    return false
  end
  mark.clear(offer.buf)
  for buf, release in pairs(held) do
    mark.clear_hint(buf)
    release()
  end
  offer, held = nil, {}
  return true
end

--- Hide the next edit if it is for a text that is no more.
---@param buf integer
function M.hide_if_stale(buf)
  if offer and offer.buf == buf and offer.tick ~= vim.api.nvim_buf_get_changedtick(buf) then
    M.hide()
  end
end

--- Hide the next edit if it is in this buffer.
---@param buf integer
function M.hide_in(buf)
  if offer and offer.buf == buf then
    M.hide()
  end
end

---@param within fun(row: integer): boolean
---@return boolean
local function is_here(within)
  local change = offer and offer.change
  return change ~= nil and vim.api.nvim_get_current_buf() == offer.buf and within(change.row)
end

---@return boolean
local function cursor_is_there()
  return is_here(function(row)
    local at = vim.api.nvim_win_get_cursor(0)[1] - 1
    return row <= at and at <= offer.change.end_row
  end)
end

---@return boolean
local function is_in_sight()
  return is_here(function(row)
    return vim.fn.line('w0') <= row + 1 and row + 1 <= vim.fn.line('w$')
  end)
end

---@return string
local function hint()
  local row = offer.change and offer.change.row or offer.edit.range.start.line
  local place = ('line %d'):format(row + 1)
  if vim.api.nvim_get_current_buf() ~= offer.buf then
    local path = vim.uri_to_fname(offer.edit.textDocument.uri)
    local shorter = vim.fs.relpath(offer.client.root_dir or vim.uv.cwd(), path) or path
    place = ('%s:%d'):format(shorter, row + 1)
  end
  local key = config.current().keymaps.next_edit or ':Midspan nextedit'
  return ('%s next edit: %s'):format(key == '<Tab>' and '⇥' or key, place)
end

--- Remember the text that the offer is for, and draw the offer in it.
local function settle()
  local edit = { newText = offer.edit.text, range = offer.edit.range }
  offer.tick = vim.api.nvim_buf_get_changedtick(offer.buf)
  offer.change = mark.change(offer.buf, edit, offer.client.offset_encoding)
  mark.draw(offer.buf, offer.change)
end

--- Give the user's keys their meaning for the next edit in a buffer.
---@param buf integer
---@return fun() release
local function hold_keys(buf)
  local keys = config.current().keymaps
  local releases = {} ---@type (fun())[]
  local function hold(key, action, what)
    if key then
      table.insert(releases, held_keys.hold(buf, key, action, what))
    end
  end
  hold(keys.next_edit, M.forward, 'next edit')
  hold(keys.dismiss_next_edit, function()
    M.dismiss()
    -- The key is given back, so now it does what it did before.
    vim.api.nvim_feedkeys(vim.keycode(keys.dismiss_next_edit), 'mi', false)
  end, 'dismiss the next edit')
  return function()
    for _, release in ipairs(releases) do
      release()
    end
  end
end

--- Draw the hint where the cursor is now, and hold the keys in the current buffer.
function M.follow_cursor()
  if not offer then
    return
  end
  for buf in pairs(held) do
    mark.clear_hint(buf)
  end
  local buf = vim.api.nvim_get_current_buf()
  if vim.bo[buf].buftype ~= '' then
    return
  end
  held[buf] = held[buf] or hold_keys(buf)
  if not is_in_sight() then
    mark.hint(buf, hint())
  end
end

--- Show the server's answer, or hide what is shown if there is no edit.
---@param client vim.lsp.Client
---@param edit? midspan.NextEdit
function M.show(client, edit)
  M.hide()
  if not edit then
    return
  end
  local buf = vim.uri_to_bufnr(edit.textDocument.uri)
  local is_loaded, version = vim.api.nvim_buf_is_loaded(buf), edit.textDocument.version
  if is_loaded and type(version) == 'number' and vim.lsp.util.buf_versions[buf] ~= version then
    return
  end
  offer = { client = client, edit = edit, buf = buf }
  if is_loaded then
    settle()
  end
  M.follow_cursor()
  client:notify(SHOWN, { item = edit })
end

--- Move the cursor to the place.
local function jump()
  local buf = offer.buf
  vim.cmd("normal! m'")
  local window = vim.fn.bufwinid(buf)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
  else
    local opened, problem = pcall(vim.api.nvim_win_set_buf, 0, buf)
    if not opened then
      tell.error(tostring(problem))
      return
    end
    vim.bo[buf].buflisted = true
  end
  if not offer.change then
    settle()
  end
  vim.api.nvim_win_set_cursor(0, { offer.change.row + 1, offer.change.col })
  vim.cmd('normal! zv')
  M.follow_cursor()
end

--- Make the edit, tell the server, and ask for the next one.
local function accept()
  local taken = assert(offer)
  M.hide_if_stale(taken.buf)
  if not offer then
    tell.warn('the text has changed meanwhile')
    return
  end
  M.hide()
  vim.bo[taken.buf].undolevels = vim.bo[taken.buf].undolevels
  local edit = { newText = taken.edit.text, range = taken.edit.range }
  vim.lsp.util.apply_text_edits({ edit }, taken.buf, taken.client.offset_encoding)
  taken.client:exec_cmd(taken.edit.command, { bufnr = taken.buf }, function() end)
  require('midspan.next_edit_requests').ask_again()
end

--- Call `action` soon, if a next edit is shown. A key that is an expression may not change text at once.
---@param action fun()
---@return boolean
local function later(action)
  if not offer then
    return false
  end
  local now = offer
  vim.schedule(function()
    if offer == now then
      action()
    end
  end)
  return true
end

--- Go to the next edit. Returns false if none is shown.
---@return boolean
function M.jump()
  return later(jump)
end

--- Make the next edit, wherever the cursor is. Returns false if none is shown.
---@return boolean
function M.accept()
  return later(function()
    if not offer.change then
      vim.fn.bufload(offer.buf)
      settle()
    end
    accept()
  end)
end

--- Go to the next edit, or make it if the cursor is there. Returns false if none is shown.
---@return boolean
function M.forward()
  return later(function()
    (cursor_is_there() and accept or jump)()
  end)
end

--- Hide the next edit; the server offers none of these places again. Returns false if none is shown.
---@return boolean
function M.dismiss()
  local shown = offer
  if not M.hide() then
    return false
  end
  client_of.execute(assert(shown).client, DISMISSED)
  return true
end

return M
