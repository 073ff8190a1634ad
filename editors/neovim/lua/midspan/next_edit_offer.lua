--- The next edit that is shown: its drawing, its hint, and its keys.

local config = require('midspan.config')
local held_keys = require('midspan.held_keys')
local mark = require('midspan.next_edit_mark')

local M = {}

local SHOWN = 'textDocument/didShowInlineEdit'

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

--- Return what is shown, if anything is.
---@return midspan.Offer?
function M.shown()
  return offer
end

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

--- Return whether the cursor is on a line that the next edit changes.
---@return boolean
function M.is_at_cursor()
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
  hold(keys.next_edit, require('midspan.next_edit').forward, 'next edit')
  hold(keys.dismiss_next_edit, function()
    require('midspan.next_edit').dismiss()
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
  local buf = require('midspan.client').buf_of(edit.textDocument.uri)
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

return M
