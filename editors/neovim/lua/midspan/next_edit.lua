--- The next edit: the place where the user's last edit fits too. It is jumped to, made and dismissed.

local client_of = require('midspan.client')
local next_edit_offer = require('midspan.next_edit_offer')
local tell = require('midspan.tell')

local M = {}

local DISMISSED = 'midspan.nextEditDismissed'

--- Show a buffer in its window, else in this one. Returns false, and says why, if Neovim refuses.
---@param buf integer
---@return boolean
local function show_buffer(buf)
  local window = vim.fn.bufwinid(buf)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    return true
  end
  local opened, problem = pcall(vim.api.nvim_win_set_buf, 0, buf)
  if not opened then
    tell.error(tostring(problem))
    return false
  end
  vim.bo[buf].buflisted = true
  return true
end

--- Return whether an offer is for the text that its buffer has now. If it is not, the user is told.
---@param offer midspan.Offer
---@return boolean
local function is_fresh(offer)
  next_edit_offer.hide_if_stale(offer.buf)
  if not next_edit_offer.shown() then
    tell.warn('the text has changed meanwhile')
  end
  return next_edit_offer.shown() ~= nil
end

--- Move the cursor to the place. In a file that was not open the server is asked again: only now its text is known.
---@param there midspan.Offer
local function jump(there)
  if there.change and not is_fresh(there) then
    return
  end
  vim.cmd("normal! m'")
  if not show_buffer(there.buf) then
    return
  end
  local row = there.change and there.change.row or there.edit.range.start.line
  row = math.min(row, vim.api.nvim_buf_line_count(there.buf) - 1)
  vim.api.nvim_win_set_cursor(0, { row + 1, there.change and there.change.col or 0 })
  vim.cmd('normal! zv')
  if there.change then
    next_edit_offer.follow_cursor()
  else
    next_edit_offer.hide()
    require('midspan.next_edit_requests').ask_again()
  end
end

--- Make the edit, tell the server, and ask for the next one. In a file that is not open, go there first.
---@param taken midspan.Offer
local function accept(taken)
  if not taken.change then
    jump(taken)
    return
  end
  if not is_fresh(taken) then
    return
  end
  next_edit_offer.hide()
  vim.bo[taken.buf].undolevels = vim.bo[taken.buf].undolevels
  local edit = { newText = taken.edit.text, range = taken.edit.range }
  vim.lsp.util.apply_text_edits({ edit }, taken.buf, taken.client.offset_encoding)
  taken.client:exec_cmd(taken.edit.command, { bufnr = taken.buf }, function() end)
  require('midspan.next_edit_requests').ask_again()
end

--- Call `action` soon, if a next edit is shown. A key that is an expression may not change text at once.
---@param action fun(offer: midspan.Offer)
---@return boolean
local function later(action)
  local offer = next_edit_offer.shown()
  if not offer then
    return false
  end
  vim.schedule(function()
    if next_edit_offer.shown() == offer then
      action(offer)
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
  return later(accept)
end

--- Go to the next edit, or make it if the cursor is there. Returns false if none is shown.
---@return boolean
function M.forward()
  return later(function(offer)
    (next_edit_offer.is_at_cursor() and accept or jump)(offer)
  end)
end

--- Hide the next edit; the server offers none of these places again. Returns false if none is shown.
---@return boolean
function M.dismiss()
  local offer = next_edit_offer.shown()
  if not offer then
    return false
  end
  next_edit_offer.hide()
  client_of.execute(offer.client, DISMISSED)
  return true
end

return M
