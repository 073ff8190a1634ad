--- The sign of a line where the engine has a suggestion that the gate held back; the key of trigger shows it.
---
--- It is asked for only if the user wants it (the option held_back), after an answer with nothing to show. The server says
--- it from the decision that `:Midspan why` explains, and asks the engine nothing.

local M = {}

local WHY_NOTHING = 'midspan/whyNoSuggestion'
local NAMESPACE = vim.api.nvim_create_namespace('midspan.held_back')
local SIGN = { sign_text = '…', sign_hl_group = 'ComplHint' }

--- Take the sign away.
---@param buf integer
function M.clear(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    vim.api.nvim_buf_clear_namespace(buf, NAMESPACE, 0, -1)
  end
end

--- Take the sign away once the cursor is on another line. On its own line it stays until the next answer, so that it
--- does not flicker at each key.
---@param buf integer
function M.moved(buf)
  local mark = vim.api.nvim_buf_get_extmarks(buf, NAMESPACE, 0, -1, { limit = 1 })[1]
  if mark and mark[2] ~= vim.api.nvim_win_get_cursor(0)[1] - 1 then
    M.clear(buf)
  end
end

--- A sign column that comes and goes would move the text to and fro.
local function keep_column()
  local column = vim.wo.signcolumn
  if column == 'auto' or column:find('^auto:%d$') then
    vim.wo[0][0].signcolumn = 'yes'
  end
end

--- Nothing is shown in the current buffer: set the sign if something was held back, else take it away.
---@param client vim.lsp.Client
---@param buf integer
---@param is_current fun(): boolean whether the text and the cursor are still those that were asked about
function M.ask(client, buf, is_current)
  if not require('midspan.config').current().held_back then
    return
  end
  client:request(WHY_NOTHING, { textDocument = vim.lsp.util.make_text_document_params(buf) }, function(err, answer)
    if not is_current() then
      return
    end
    M.clear(buf)
    if not err and answer.isHeldBack then
      keep_column()
      vim.api.nvim_buf_set_extmark(buf, NAMESPACE, vim.api.nvim_win_get_cursor(0)[1] - 1, 0, SIGN)
    end
  end, buf)
end

return M
