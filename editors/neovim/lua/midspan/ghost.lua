--- The ghost text of each buffer: what is drawn, and whether it still fits the text around the cursor.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('midspan.ghost')
local SUGGESTION, HINT = 'ComplHint', 'ComplHintMore'

---@class midspan.Answer
---@field client vim.lsp.Client
---@field items lsp.InlineCompletionItem[]
---@field is_asked boolean whether the user asked for it
---@field number integer which item is shown
---@field taken integer how many bytes of the items' texts are before the start of `row`
---@field row integer 0-based
---@field before string the line before the items
---@field after string the line after the cursor

---@class midspan.Place
---@field row integer 0-based
---@field col integer 0-based, in bytes
---@field line string

---@class midspan.Ghost
---@field client vim.lsp.Client
---@field item lsp.InlineCompletionItem
---@field rest string the part of the item's text that is not typed yet
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

--- Return the place of the cursor.
---@param buf integer
---@return midspan.Place
function M.place(buf)
  local row, col, line = here(buf)
  return { row = row, col = col, line = line }
end

---@param answer midspan.Answer
---@param item lsp.InlineCompletionItem
---@param buf integer
---@return string? rest the part of the item's text that is not typed yet; nil if the text at the cursor does not fit it
local function rest_of(answer, item, buf)
  local row, col, line = here(buf)
  if row ~= answer.row or col < #answer.before or line:sub(col + 1) ~= answer.after then
    return nil
  end
  local text, typed = item.insertText:sub(answer.taken + 1), line:sub(#answer.before + 1, col)
  if not vim.startswith(line, answer.before) or not vim.startswith(text, typed) then
    return nil
  end
  local rest = text:sub(#typed + 1)
  return rest ~= '' and rest or nil
end

--- Return the suggestion that is drawn, or nil.
---@return midspan.Ghost?
function M.shown()
  local buf = vim.api.nvim_get_current_buf()
  local answer = answers[buf]
  local item = answer and answer.items[answer.number]
  local rest = item and rest_of(answer, item, buf)
  return rest and { client = answer.client, item = item, rest = rest, count = #answer.items }
end

--- Neovim draws a tab in virtual text as "^I".
---@param text string
---@param column integer where it begins on the screen
---@param buf integer
---@return string
local function without_tabs(text, column, buf)
  if not text:find('\t', 1, true) then
    return text
  end
  local width, drawn = vim.bo[buf].tabstop, ''
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    drawn = drawn .. part
    if tab ~= '' then
      drawn = drawn .. (' '):rep(width - (column + vim.fn.strdisplaywidth(drawn)) % width)
    end
  end
  return drawn
end

--- Return what is shown after a suggestion that the user asked for: how sure the model is, and which of how many it is.
---@param answer midspan.Answer
---@return string?
local function hint_of(answer)
  if not answer.is_asked then
    return nil
  end
  local command = answer.items[answer.number].command
  local tag = command and command.arguments and command.arguments[1] or {}
  local parts = {} ---@type string[]
  if type(tag.confidence) == 'number' then
    table.insert(parts, ('%d %% sure'):format(math.floor(tag.confidence * 100 + 0.5)))
  end
  if #answer.items > 1 then
    table.insert(parts, ('%d of %d'):format(answer.number, #answer.items))
  end
  return #parts > 0 and ('  ' .. table.concat(parts, ', ')) or nil
end

--- Draw what is left of the suggestion of a buffer, or nothing if it does not fit the text at the cursor.
---@param buf integer
function M.draw(buf)
  vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  local shown = vim.api.nvim_get_current_buf() == buf and M.shown()
  if not shown then
    return
  end
  local row, col = here(buf)
  local lines = {} ---@type [string, string][][]
  for line in vim.gsplit(shown.rest, '\n', { plain = true }) do
    local column = #lines == 0 and vim.fn.virtcol('.') - 1 or 0
    table.insert(lines, { { without_tabs(line, column, buf), SUGGESTION } })
  end
  local hint = hint_of(answers[buf])
  if hint then
    table.insert(lines[#lines], { hint, HINT })
  end
  vim.api.nvim_buf_set_extmark(buf, NAMESPACE, row, col, {
    virt_text = lines[1],
    virt_lines = { unpack(lines, 2) },
    virt_text_pos = 'inline',
    hl_mode = 'combine',
  })
end

---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
---@param is_asked boolean whether the user asked for them
---@param place midspan.Place
---@return midspan.Answer
local function answer_at(client, items, is_asked, place)
  local range = items[1] and items[1].range
  local start = range and vim.str_byteindex(place.line, client.offset_encoding, range.start.character, false)
  return {
    client = client,
    items = items,
    is_asked = is_asked,
    number = 1,
    taken = 0,
    row = place.row,
    before = place.line:sub(1, start or place.col),
    after = place.line:sub(place.col + 1),
  }
end

--- Show items that were asked for at a place where the cursor is no more, if the user only typed along the first one.
---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
---@param place midspan.Place
function M.show_late(client, items, place)
  local buf = vim.api.nvim_get_current_buf()
  local answer = answer_at(client, items, false, place)
  if items[1] and not M.shown() and rest_of(answer, items[1], buf) then
    answers[buf] = answer
    M.draw(buf)
  end
end

--- Show one of these items at the cursor of the current buffer: the one that is drawn already, else the first.
---@param client vim.lsp.Client
---@param items lsp.InlineCompletionItem[]
---@param is_asked boolean whether the user asked for them
function M.show(client, items, is_asked)
  local buf = vim.api.nvim_get_current_buf()
  local drawn, answer = M.shown(), answer_at(client, items, is_asked, M.place(buf))
  for number, item in ipairs(items) do
    if drawn and rest_of(answer, item, buf) == drawn.rest then
      answer.number = number
      break
    end
  end
  answers[buf] = answer
  M.draw(buf)
end

--- Hide the suggestion of a buffer, and forget it.
---@param buf integer
function M.hide(buf)
  answers[buf] = nil
  if vim.api.nvim_buf_is_loaded(buf) then
    vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  end
end

--- Insert a text at a place of the current buffer as a paste: of that Neovim's `.` knows, and repeats it as it is, where
--- the same text as keys would be indented and completed once more.
---@param piece string
---@param put fun(lines: string[]) changes the text
local function paste(piece, put)
  local users = vim.paste
  -- The user's own may be made for what comes from a terminal.
  vim.paste = function(lines)
    put(lines)
    return true
  end
  local done, problem = pcall(vim.api.nvim_paste, piece, false, -1)
  vim.paste = users
  if not done then
    error(problem, 0)
  end
end

--- Insert the first bytes of what is shown, as if they were typed. Returns how many bytes of the item are in the text.
---@param piece string
---@return integer
function M.insert(piece)
  local buf = vim.api.nvim_get_current_buf()
  local answer = answers[buf]
  local row, col, line = here(buf)
  local done = answer.taken + col - #answer.before + #piece
  local lines = vim.split(piece, '\n', { plain = true })
  local last = lines[#lines]
  paste(piece, function()
    vim.api.nvim_buf_set_text(buf, row, col, row, col, lines)
    vim.api.nvim_win_set_cursor(0, { row + #lines, (#lines == 1 and col or 0) + #last })
  end)
  if #lines > 1 then
    answer.taken, answer.row, answer.before, answer.after = done, row + #lines - 1, last, line:sub(col + 1)
  end
  M.draw(buf)
  return done
end

--- Show the candidate that is `count` further in the list.
---@param count integer
function M.step(count)
  local buf = vim.api.nvim_get_current_buf()
  local answer = answers[buf]
  answer.number = (answer.number - 1 + count) % #answer.items + 1
  M.draw(buf)
end

return M
