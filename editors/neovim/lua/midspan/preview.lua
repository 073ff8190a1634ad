--- The preview of a bulk edit: a window with a block for each place. The user ticks what is wanted and applies it.

local apply_edit = require('midspan.apply_edit')
local bulk = require('midspan.bulk')
local preview_page = require('midspan.preview_page')
local preview_window = require('midspan.preview_window')
local tell = require('midspan.tell')
local tracked_range = require('midspan.tracked_range')

local M = {}

local APPLY = 'midspan/applyBulkEdit'
local NAMESPACE = vim.api.nvim_create_namespace('midspan.preview')

---@class midspan.Preview
---@field client vim.lsp.Client
---@field action midspan.BulkAction
---@field range fun(): lsp.Range where the lines of the action are now
---@field edit midspan.BulkEdit
---@field ticked table<integer, boolean>
---@field page midspan.PreviewPage
---@field buf integer
---@field is_applying? boolean
---@field origin integer the window that the user came from
---@field notice? string
local Preview = {}
Preview.__index = Preview

---@type midspan.Preview?
local shown

--- Write a row of the page, and color it.
---@param row integer counted from 0
function Preview:draw_row(row)
  vim.api.nvim_buf_set_lines(self.buf, row, row + 1, false, { self.page.lines[row + 1] })
  vim.api.nvim_buf_clear_namespace(self.buf, NAMESPACE, row, row + 1)
  for _, mark in ipairs(self.page.marks[row]) do
    local options = { end_row = row + 1, hl_group = mark.group, hl_eol = true, priority = 100, strict = false }
    if mark.first then
      options = { end_col = mark.last, hl_group = mark.group, priority = 110 }
    end
    vim.api.nvim_buf_set_extmark(self.buf, NAMESPACE, row, mark.first or 0, options)
  end
end

--- Draw the page. If it has as many lines as before, only the changed rows are drawn, so that its folds stay.
function Preview:draw()
  self.page = preview_page.page(self.edit, self.ticked, self.notice)
  vim.bo[self.buf].modifiable = true
  local old = vim.api.nvim_buf_get_lines(self.buf, 0, -1, false)
  local is_new = #old ~= #self.page.lines
  if is_new then
    vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, self.page.lines)
  end
  for row, line in ipairs(self.page.lines) do
    if is_new or old[row] ~= line then
      self:draw_row(row - 1)
    end
  end
  if is_new then
    self:fold()
  end
  vim.bo[self.buf].modifiable, vim.bo[self.buf].modified = false, false
end

--- Return the window that shows the preview.
---@return integer
function Preview:window()
  return vim.fn.win_findbuf(self.buf)[1]
end

function Preview:fold()
  local folded = self.page.folded
  vim.api.nvim_win_call(self:window(), function()
    vim.cmd('silent! normal! zE')
    for _, rows in ipairs(folded) do
      vim.cmd(('%d,%dfold'):format(rows.first, rows.last))
    end
  end)
end

--- Return what the cursor is on.
---@return midspan.PreviewTarget?
function Preview:target()
  return self.page.targets[vim.api.nvim_win_get_cursor(self:window())[1] - 1]
end

---@param places midspan.BulkPlace[]
---@param wanted boolean
function Preview:tick(places, wanted)
  if self.edit.exclusive and wanted then
    self.ticked, places = {}, { places[1] }
  end
  for _, place in ipairs(places) do
    self.ticked[place.id] = wanted
  end
  self:draw()
end

--- Tick places, or take the ticks off if all of them have one.
---@param places midspan.BulkPlace[]
function Preview:toggle(places)
  local all_ticked = vim.iter(places):all(function(place)
    return self.ticked[place.id]
  end)
  self:tick(places, not all_ticked)
end

--- Return a window for the files: the one that the user came from, if it is still there.
---@return integer
function Preview:file_window()
  if vim.api.nvim_win_is_valid(self.origin) then
    return self.origin
  end
  return vim.api.nvim_open_win(0, false, { split = 'above', win = self:window() })
end

--- Show the place at the cursor in its file.
function Preview:go()
  local target = self:target()
  if target then
    vim.api.nvim_set_current_win(self:file_window())
    local start = { line = target.line, character = 0 }
    local location = { uri = target.uri, range = { start = start, ['end'] = start } }
    vim.lsp.util.show_document(location, self.client.offset_encoding, { focus = true })
  end
end

---@param line string
function Preview:complain(line)
  self.notice = line .. '; r searches again'
  tell.warn(line)
  if shown == self then
    self:draw()
  end
end

--- Have the server apply what is ticked.
function Preview:apply()
  if self.is_applying then
    return
  end
  local ids = {} ---@type integer[]
  for _, place in ipairs(self.edit.places) do
    if self.ticked[place.id] then
      table.insert(ids, place.id)
    end
  end
  if #ids == 0 then
    tell.warn('nothing is ticked, so there is nothing to apply')
    return
  end
  self.is_applying = true
  self.client:request(APPLY, { id = self.edit.id, places = ids }, function(err, result)
    self.is_applying = false
    if err or not result.applied then
      self:complain(err and err.message or result.message)
      return
    end
    self:close()
    local is_open = #apply_edit.unwritten() > 0
    tell.info(result.message .. (is_open and ', not saved; :Midspan write or undo' or ''))
  end)
end

--- Compute the edit again, for the text as it is now.
function Preview:search_again()
  local buf = require('midspan.client').buf_of(self.action.uri)
  local now = { version = vim.lsp.util.buf_versions[buf], range = self.range() }
  bulk.ask(self.client, vim.tbl_extend('force', self.action, now), function(edit)
    if shown == self then
      self.notice = nil
      self:use(edit)
    end
  end)
end

function Preview:close()
  if shown == self then
    shown = nil
  end
  if vim.api.nvim_buf_is_valid(self.buf) then
    vim.api.nvim_buf_delete(self.buf, { force = true })
  end
end

--- Show an edit, with a tick at all places that are not doubtful, or at the first of those to choose one of.
---@param edit midspan.BulkEdit
function Preview:use(edit)
  self.edit, self.ticked = edit, {}
  for _, place in ipairs(edit.places) do
    self.ticked[place.id] = not place.doubtful and not (edit.exclusive and next(self.ticked))
  end
  self:draw()
  vim.api.nvim_win_set_cursor(self:window(), { self.page.first_place + 1, 0 })
end

function Preview:set_keys()
  local function key(keys, what, action)
    for _, each in ipairs(keys) do
      vim.keymap.set('n', each, action, { buffer = self.buf, nowait = true, desc = 'Midspan: ' .. what })
    end
  end
  -- stylua: ignore start
  key({ '<Space>', 'x' }, 'tick, or not', function() self:toggle((self:target() or { places = {} }).places) end)
  key({ 'a' }, 'tick all', function() self:tick((preview_page.groups(self.edit)), true) end)
  key({ 'w' }, 'tick the wide ones, or not', function() self:toggle(select(2, preview_page.groups(self.edit))) end)
  key({ 'n' }, 'tick none', function() self:tick(self.edit.places, false) end)
  key({ '<CR>' }, 'go there', function() self:go() end)
  key({ '<C-y>' }, 'apply', function() self:apply() end)
  key({ 'r' }, 'search again', function() self:search_again() end)
  key({ 'q' }, 'close', function() self:close() end)
  -- stylua: ignore end
end

--- Show an edit in a new window, in place of the preview that is shown.
---@param client vim.lsp.Client
---@param action midspan.BulkAction
---@param edit midspan.BulkEdit
function M.show(client, action, edit)
  if shown then
    shown:close()
  end
  local preview = setmetatable({ client = client, action = action }, Preview)
  preview.range = tracked_range.follow(require('midspan.client').buf_of(action.uri), action.range)
  preview.origin = vim.api.nvim_get_current_win()
  shown = preview
  preview.buf = preview_window.open({
    write = function()
      preview:apply()
    end,
    wiped = function()
      shown = shown ~= preview and shown or nil
    end,
  })
  preview:set_keys()
  preview:use(edit)
end

--- Ask what an action would change, and show it.
---@param client vim.lsp.Client
---@param action midspan.BulkAction
function M.open(client, action)
  bulk.ask(client, action, function(edit)
    if #edit.places == 0 and #edit.leftOut == 0 then
      tell.info(#edit.reached > 0 and edit.reached[1] or 'there is no place to change')
    else
      M.show(client, action, edit)
    end
  end)
end

return M
