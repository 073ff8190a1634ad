--- A range of a buffer that moves with the text.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('midspan.tracked_range')

--- Follow a range of whole lines. The function that is returned says where they are now.
---@param buf integer
---@param range lsp.Range
---@return fun(): lsp.Range
function M.follow(buf, range)
  if not vim.api.nvim_buf_is_loaded(buf) then
    return function()
      return range
    end
  end
  local first, last = range.start.line, range['end'].line
  local mark = vim.api.nvim_buf_set_extmark(buf, NAMESPACE, first, 0, { end_row = last, end_col = 0, strict = false })
  return function()
    local known = vim.api.nvim_buf_is_loaded(buf)
    local now = known and vim.api.nvim_buf_get_extmark_by_id(buf, NAMESPACE, mark, { details = true })
    if not now or not now[1] then
      return range
    end
    return {
      start = { line = now[1], character = range.start.character },
      ['end'] = { line = now[3].end_row, character = range['end'].character },
    }
  end
end

return M
