--- Keys of normal mode that have a meaning of ours only while something is shown.

local M = {}

local DESCRIPTION = 'Midspan: '

---@param buf integer
---@param key string
---@return table<string, any> mapping as maparg() has it
local function mapping_of(buf, key)
  return vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(key, 'n', false, true)
  end)
end

--- Give a key a meaning in a buffer. The function that is returned gives the key back to who had it.
---@param buf integer
---@param key string
---@param action fun()
---@param what string
---@return fun() release
function M.hold(buf, key, action, what)
  local before = mapping_of(buf, key)
  vim.keymap.set('n', key, action, { buffer = buf, nowait = true, desc = DESCRIPTION .. what })
  return function()
    if not vim.api.nvim_buf_is_valid(buf) or mapping_of(buf, key).desc ~= DESCRIPTION .. what then
      return
    end
    vim.keymap.del('n', key, { buffer = buf })
    if before.buffer == 1 then
      vim.api.nvim_buf_call(buf, function()
        vim.fn.mapset('n', false, before)
      end)
    end
  end
end

return M
