--- The ghost text that Neovim draws, and whether it still fits the text around the cursor.
---
--- While the user types, Neovim keeps drawing an answer until the next one comes, also if it no longer fits.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
local SUGGESTION = 'ComplHint'

---@class midspan.Answer
---@field client vim.lsp.Client
---@field items lsp.InlineCompletionItem[]
---@field row integer 0-based
---@field before string the line before the items
---@field after string the line after the cursor

---@class midspan.Ghost
---@field client vim.lsp.Client
---@field item lsp.InlineCompletionItem
---@field rest string the part of the item's text that is not typed yet, as it is drawn
---@field count integer how many candidates there are

---@type table<integer, midspan.Answer>
local answers = {}

---@param buf integer
---@return integer row 0-based
---@return integer col 0-based, in bytes
---@return string line
local function here(buf)
  local cursor = vim.api.nvim_win_get_cursor(0)
  return cursor[1] - 1, cursor[2], vim.api.nvim_buf_get_lines(buf, cursor[1] - 1, cursor[1], false)[1] or ''
end

--- Return the ghost text that Neovim draws and its position, without Neovim's mark for the candidate's number.
---@param buf integer
---@return string?
---@return integer? row
---@return integer? col
local function drawn(buf)
  local mark = vim.api.nvim_buf_get_extmarks(buf, NAMESPACE, 0, -1, { details = true })[1]
  if not mark then
    return nil
  end
  local lines = { mark[4].virt_text or {} }
  vim.list_extend(lines, mark[4].virt_lines or {})
  local texts = vim.tbl_map(function(chunks)
    local own = vim.tbl_filter(function(chunk)
      return chunk[2] == SUGGESTION
    end, chunks)
    return table.concat(vim.tbl_map(function(chunk)
      return chunk[1]
    end, own))
  end, lines)
  return table.concat(texts, '\n'), mark[2], mark[3]
end

--- Remember the answer that Neovim draws next. From then on it is hidden if it no longer fits the text.
---@param buf integer
---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
function M.remember(buf, client, items)
  if vim.api.nvim_get_current_buf() ~= buf then
    return
  end
  local row, col, line = here(buf)
  local range = items[1] and items[1].range
  local start = range and vim.str_byteindex(line, client.offset_encoding, range.start.character, false) or col
  answers[buf] = { client = client, items = items, row = row, before = line:sub(1, start), after = line:sub(col + 1) }
  M.follow(buf)
end

--- Return the part of an item's text that is not typed yet; nil if the text at the cursor no longer fits it.
---@param buf integer
---@param item lsp.InlineCompletionItem
---@return string?
function M.rest_of(buf, item)
  local answer = answers[buf]
  local row, col, line = here(buf)
  if not answer or row ~= answer.row or col < #answer.before or line:sub(col + 1) ~= answer.after then
    return nil
  end
  local typed = line:sub(#answer.before + 1, col)
  if not vim.startswith(line, answer.before) or not vim.startswith(item.insertText, typed) then
    return nil
  end
  local rest = item.insertText:sub(#typed + 1)
  return rest ~= '' and rest or nil
end

--- Return the suggestion that is drawn and fits the text at the cursor, or nil.
---@return midspan.Ghost?
function M.shown()
  local buf = vim.api.nvim_get_current_buf()
  local answer = answers[buf]
  local text, row, col = drawn(buf)
  if not answer or not text or row ~= answer.row or col < #answer.before then
    return nil
  end
  for _, item in ipairs(answer.items) do
    -- The user may type faster than Neovim draws, so the drawn text can lag by a few characters.
    if item.insertText:sub(col - #answer.before + 1) == text then
      local rest = M.rest_of(buf, item)
      return rest and { client = answer.client, item = item, rest = rest, count = #answer.items }
    end
  end
end

--- Hide the suggestion, if one is shown.
function M.put_away()
  if M.shown() then
    vim.lsp.inline_completion.get({ on_accept = function() end })
  end
end

--- Hide the ghost text of a buffer if it is ours and no longer fits.
---@param buf integer
local function hide_untrue(buf)
  if answers[buf] and vim.api.nvim_get_current_buf() == buf and not M.shown() then
    vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  end
end

--- Keep a buffer's ghost text true. Our autocommands have to be made after Neovim's own, so that they run after them.
---@param buf integer
function M.follow(buf)
  local group = vim.api.nvim_create_augroup('midspan.ghost', { clear = false })
  if #vim.api.nvim_get_autocmds({ group = group, buffer = buf }) > 0 then
    return
  end
  vim.api.nvim_create_autocmd({ 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, {
    group = group,
    buffer = buf,
    callback = function()
      hide_untrue(buf)
    end,
  })
  vim.api.nvim_create_autocmd('BufUnload', {
    group = group,
    buffer = buf,
    once = true,
    callback = function()
      answers[buf] = nil
      vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
    end,
  })
end

return M
