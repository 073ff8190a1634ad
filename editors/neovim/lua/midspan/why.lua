--- `:Midspan why`: where the last suggestion in a buffer came from, in a floating window; or why there was none.

local client_of = require('midspan.client')
local tell = require('midspan.tell')

local M = {}

local WHY = 'midspan/whyThisSuggestion'
local TITLE = ' Why this suggestion? '
local KEYS = ' <CR> goes there, q closes '

---@class midspan.Place
---@field text string one line to show
---@field uri string
---@field line integer counted from 0

---@param lines string[]
---@return integer width, integer height
local function size_of(lines)
  local widest = #KEYS + 2
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.min(widest, math.max(20, vim.o.columns - 4))
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return width, math.min(height, math.max(1, vim.o.lines - 6))
end

--- Show a line about the whole suggestion and one for each place. <CR> on a place opens it.
---@param client vim.lsp.Client
---@param answer { summary: string, places: midspan.Place[] }
local function show(client, answer)
  vim.cmd.stopinsert()
  local lines = { answer.summary }
  for _, place in ipairs(answer.places) do
    table.insert(lines, '  ' .. place.text)
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden, vim.bo[buf].filetype = false, 'wipe', 'midspan-why'
  local width, height = size_of(lines)
  -- Above the cursor where there is no room below, so that it does not hide the suggestion.
  local options = vim.lsp.util.make_floating_popup_options(width, height, { border = 'rounded', title = TITLE })
  options.footer = KEYS
  local window = vim.api.nvim_open_win(buf, true, options)
  vim.wo[window].cursorline, vim.wo[window].wrap, vim.wo[window].linebreak = true, true, true
  vim.api.nvim_win_set_cursor(window, { 2, 0 })

  local function close()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
  local function go()
    local place = answer.places[vim.api.nvim_win_get_cursor(window)[1] - 1]
    if place then
      close()
      local start = { line = place.line, character = 0 }
      local location = { uri = place.uri, range = { start = start, ['end'] = start } }
      vim.lsp.util.show_document(location, client.offset_encoding, { focus = true })
    end
  end
  vim.keymap.set('n', '<CR>', go, { buffer = buf, desc = 'Midspan: go there' })
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, close, { buffer = buf, nowait = true, desc = 'Midspan: close' })
  end
  vim.api.nvim_create_autocmd('BufLeave', { buffer = buf, once = true, callback = vim.schedule_wrap(close) })
end

--- Ask the server about the last suggestion in the current buffer, or the last silence, and show its answer.
function M.ask()
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.of_or_tell(buf)
  if not client then
    return
  end
  if require('midspan.toggle').is_off_in(buf) then
    tell.info('suggestions are off in this buffer; `:Midspan toggle buffer` turns them on')
    return
  end
  client:request(WHY, { textDocument = vim.lsp.util.make_text_document_params(buf) }, function(err, answer)
    if err then
      tell.error(err.message)
    elseif #answer.places == 0 then
      tell.info(answer.summary)
    elseif vim.api.nvim_get_current_buf() == buf then
      show(client, answer)
    end
  end, buf)
end

return M
