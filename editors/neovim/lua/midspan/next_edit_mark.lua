--- How the next edit is drawn: what goes is marked, what comes is virtual text, and a hint says where it is.

local changed_part = require('midspan.changed_part')

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('midspan.next_edit')
local HINTS = vim.api.nvim_create_namespace('midspan.next_edit_hint')
local REMOVED, ADDED, HINT = 'DiffDelete', 'DiffAdd', 'ComplHint'

---@class midspan.Change the changed part of a buffer; rows and columns count from 0, columns in bytes
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer
---@field text string what takes its place

---@param buf integer
---@param position lsp.Position
---@param encoding string
---@return integer row
---@return integer col
local function place_of(buf, position, encoding)
  local row = math.min(position.line, vim.api.nvim_buf_line_count(buf) - 1)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  if row < position.line then
    return row, #line
  end
  return row, vim.str_byteindex(line, encoding, position.character, false)
end

--- Return where the text is after the first `bytes` bytes of the text from a position on.
---@param row integer
---@param col integer
---@param text string
---@return integer row
---@return integer col
local function after(row, col, text)
  local lines = vim.split(text, '\n', { plain = true })
  return row + #lines - 1, (#lines == 1 and col or 0) + #lines[#lines]
end

--- Return what an edit really changes: without what is the same at the start and end of both texts.
---@param buf integer a loaded buffer
---@param edit lsp.TextEdit
---@param encoding string
---@return midspan.Change
function M.change(buf, edit, encoding)
  local row, col = place_of(buf, edit.range.start, encoding)
  local end_row, end_col = place_of(buf, edit.range['end'], encoding)
  local old = table.concat(vim.api.nvim_buf_get_text(buf, row, col, end_row, end_col, {}), '\n')
  local new = edit.newText:gsub('\r\n?', '\n')
  local start, tail = changed_part.same_around(old, new)
  local first_row, first_col = after(row, col, old:sub(1, start))
  local last_row, last_col = after(row, col, old:sub(1, #old - tail))
  local text = new:sub(start + 1, #new - tail)
  return { row = first_row, col = first_col, end_row = last_row, end_col = last_col, text = text }
end

---@param lines string[]
---@return string[][][]
local function as_virtual(lines)
  return vim.tbl_map(function(line)
    return { { line ~= '' and line or ' ', ADDED } }
  end, lines)
end

--- Return the whole lines that a change leaves.
---@param buf integer
---@param change midspan.Change
---@return string[]
local function lines_after(buf, change)
  local before = vim.api.nvim_buf_get_text(buf, change.row, 0, change.row, change.col, {})[1]
  local rest = vim.api.nvim_buf_get_lines(buf, change.end_row, change.end_row + 1, false)[1]:sub(change.end_col + 1)
  return vim.split(before .. change.text .. rest, '\n', { plain = true })
end

---@param buf integer
---@param change midspan.Change
local function draw_added(buf, change)
  local function mark(row, col, options)
    vim.api.nvim_buf_set_extmark(buf, NAMESPACE, row, col, options)
  end
  if change.text == '' then
    return
  end
  if not change.text:find('\n', 1, true) and change.row == change.end_row then
    mark(change.end_row, change.end_col, { virt_text = { { change.text, ADDED } }, virt_text_pos = 'inline' })
    return
  end
  local lines = lines_after(buf, change)
  local is_insertion = change.row == change.end_row and change.col == change.end_col
  local rest = vim.api.nvim_buf_get_lines(buf, change.end_row, change.end_row + 1, false)[1]:sub(change.end_col + 1)
  local above = false
  if is_insertion and rest == '' and vim.startswith(change.text, '\n') then
    table.remove(lines, 1)
  elseif is_insertion and change.col == 0 and vim.endswith(change.text, '\n') then
    table.remove(lines)
    above = true
  end
  mark(change.end_row, 0, { virt_lines = as_virtual(lines), virt_lines_above = above })
end

--- Draw a change, in place of the one that was drawn before.
---@param buf integer
---@param change midspan.Change
function M.draw(buf, change)
  vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  vim.api.nvim_buf_set_extmark(buf, NAMESPACE, change.row, change.col, {
    end_row = change.end_row,
    end_col = change.end_col,
    hl_group = REMOVED,
  })
  draw_added(buf, change)
end

--- Say at the end of the cursor's line where the next edit is.
---@param buf integer the current buffer
---@param text string
function M.hint(buf, text)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  vim.api.nvim_buf_set_extmark(buf, HINTS, row, 0, { virt_text = { { '  ' .. text, HINT } }, virt_text_pos = 'eol' })
end

--- Take the hint away.
---@param buf integer
function M.clear_hint(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, HINTS, 0, -1)
  end
end

--- Take everything away that is drawn in a buffer.
---@param buf integer
function M.clear(buf)
  M.clear_hint(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  end
end

return M
