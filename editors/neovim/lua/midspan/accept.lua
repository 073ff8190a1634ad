--- Accepting a suggestion, whole or in part, and dismissing one.

local client_of = require('midspan.client')
local ghost = require('midspan.ghost')

local M = {}

local DISMISSED = 'midspan.dismissed'
local PARTLY_ACCEPTED = 'textDocument/didPartiallyAcceptCompletion'

--- Insert `text` at the cursor. One undo removes it.
---@param text string
local function insert(text)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local lines = vim.split(text, '\n', { plain = true })
  vim.bo.undolevels = vim.bo.undolevels
  vim.api.nvim_buf_set_text(0, row - 1, col, row - 1, col, lines)
  vim.api.nvim_win_set_cursor(0, { row + #lines - 1, (#lines == 1 and col or 0) + #lines[#lines] })
end

--- Hide the ghost text and call `then_` with the part of it that is not typed yet. We insert this part ourselves:
--- Neovim 0.12.4 leaves stray text if the user typed a matching character after the answer.
---@param shown midspan.Ghost
---@param then_ fun(rest: string)
local function take_off(shown, then_)
  local buf = vim.api.nvim_get_current_buf()
  vim.lsp.inline_completion.get({
    on_accept = function()
      local rest = ghost.rest_of(buf, shown.item)
      if rest then
        then_(rest)
      end
    end,
  })
end

---@param shown midspan.Ghost
local function count_accepted(shown)
  if shown.item.command then
    shown.client:exec_cmd(shown.item.command, { bufnr = vim.api.nvim_get_current_buf() }, function() end)
  end
end

---@return midspan.Ghost?
local function acceptable()
  -- While the completion menu is open, the keys belong to the menu.
  return vim.fn.pumvisible() == 0 and ghost.shown() or nil
end

--- Insert the whole suggestion.
---@return boolean
function M.all()
  local shown = acceptable()
  if not shown then
    return false
  end
  take_off(shown, function(rest)
    insert(rest)
    count_accepted(shown)
  end)
  return true
end

---@param shown midspan.Ghost
---@param piece string
local function take_part(shown, piece)
  local function put(rest)
    insert(piece)
    if rest == piece then
      count_accepted(shown)
      return
    end
    local done = #shown.item.insertText - #rest + #piece
    local length = vim.str_utfindex(shown.item.insertText, 'utf-16', done, false)
    shown.client:notify(PARTLY_ACCEPTED, { item = shown.item, acceptedLength = length })
  end
  if piece ~= shown.rest and not piece:find('\n', 1, true) then
    -- Inserted as if it were typed, so Neovim keeps drawing the rest without a flicker.
    vim.schedule(function()
      local rest = ghost.rest_of(vim.api.nvim_get_current_buf(), shown.item)
      if rest and vim.startswith(rest, piece) then
        put(rest)
      end
    end)
  else
    take_off(shown, put)
  end
end

--- Insert what `pattern` matches at the start of the suggestion, and keep showing the rest.
---@param pattern string
---@return boolean
local function part(pattern)
  local shown = acceptable()
  if not shown then
    return false
  end
  local piece = vim.fn.matchstr(shown.rest, pattern)
  take_part(shown, piece ~= '' and piece or shown.rest)
  return true
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
  take_off(shown, function()
    local provider = client.server_capabilities.executeCommandProvider or {}
    if vim.list_contains(provider.commands or {}, DISMISSED) then
      client_of.execute(client, DISMISSED, { { uri = params.textDocument.uri, position = params.position } })
    end
  end)
  return true
end

return M
