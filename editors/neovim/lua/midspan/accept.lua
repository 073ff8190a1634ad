--- Accepting a suggestion, whole or in part, and dismissing one.

local ask = require('midspan.ask')
local ghost = require('midspan.ghost')
local macro = require('midspan.macro')
local menu = require('midspan.menu')

local M = {}

local DISMISSED = 'midspan.dismissed'
local PARTLY_ACCEPTED = 'textDocument/didPartiallyAcceptCompletion'
local TEXT_IS_LOCKED = 'E565'
--- Ends Neovim's completion and leaves the text as it is (|i_CTRL-X_CTRL-Z|).
local CLOSE_MENU = vim.keycode('<C-x><C-z>')

---@return midspan.Ghost?
local function acceptable()
  -- While an entry of the completion menu is selected, the keys belong to the menu.
  return not menu.has_selection() and ghost.shown() or nil
end

---@param shown midspan.Ghost
---@param piece string
local function take(shown, piece)
  local buf = vim.api.nvim_get_current_buf()
  vim.bo.undolevels = vim.bo.undolevels
  local done = ghost.insert(piece)
  macro.note(piece)
  if piece == shown.rest then
    ghost.hide(buf)
  end
  -- The sooner the server is asked, the sooner the next suggestion is there.
  ask.now(buf)
  if piece == shown.rest then
    if shown.item.command then
      shown.client:exec_cmd(shown.item.command, { bufnr = buf }, function() end)
    end
  else
    local length = vim.str_utfindex(shown.item.insertText, 'utf-16', done, false)
    shown.client:notify(PARTLY_ACCEPTED, { item = shown.item, acceptedLength = length })
  end
end

--- Take what `piece_of` returns of the suggestion. A key that is an expression may not change the text at once, and the
--- menu has to be closed first: then it is done a moment later, if the suggestion is still there.
---@param piece_of fun(rest: string): string
---@return boolean
local function take_part(piece_of)
  local shown = acceptable()
  if not shown then
    return false
  end
  local function act()
    local now = acceptable()
    if now and now.item == shown.item then
      take(now, piece_of(now.rest))
    end
  end
  if menu.is_open() then
    vim.api.nvim_feedkeys(CLOSE_MENU, 'in', false)
    vim.schedule(act)
    return true
  end
  local done, problem = pcall(act)
  if not done and tostring(problem):find(TEXT_IS_LOCKED, 1, true) then
    vim.schedule(act)
  elseif not done then
    error(problem, 0)
  end
  return true
end

--- Insert the whole suggestion.
---@return boolean
function M.all()
  return take_part(function(rest)
    return rest
  end)
end

--- Insert what `pattern` matches at the start of the suggestion, and keep showing the rest.
---@param pattern string
---@return boolean
local function part(pattern)
  return take_part(function(rest)
    local piece = vim.fn.matchstr(rest, pattern)
    return piece ~= '' and piece or rest
  end)
end

--- Insert the next word with the white space before it. The option 'iskeyword' says what a word is.
---@return boolean
function M.word()
  return part([[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
end

--- Insert the suggestion up to the end of its line; at the end of a line, its next line.
---@return boolean
function M.line()
  return part([[^\n*[^\n]\+]])
end

--- Hide the suggestion, and ask the server not to offer it here again.
---@return boolean
function M.dismiss()
  local shown = ghost.shown()
  if not shown then
    return false
  end
  local client = shown.client
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  ask.rest(vim.api.nvim_get_current_buf())
  local provider = client.server_capabilities.executeCommandProvider or {}
  if vim.list_contains(provider.commands or {}, DISMISSED) then
    local where = { uri = params.textDocument.uri, position = params.position }
    require('midspan.client').execute(client, DISMISSED, { where })
  end
  return true
end

return M
