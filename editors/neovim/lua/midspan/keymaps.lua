--- The keys that the user named. If no suggestion is shown, a key does what it did before.

local M = {}

local before_prefix = '<Plug>(midspan-else-%s)'

--- Save the old meaning of a key under a name of ours: its mapping, or the key itself.
---@param action string
---@param key string
---@return string name
local function keep(action, key)
  local name = before_prefix:format(action)
  local mapping = vim.fn.maparg(key, 'i', false, true)
  if vim.tbl_isempty(mapping) or mapping.buffer == 1 or (mapping.desc or ''):find('^Midspan: ') then
    if vim.tbl_isempty(vim.fn.maparg(name, 'i', false, true)) then
      vim.keymap.set('i', name, key)
    end
    return name
  end
  local rhs = mapping.callback or mapping.rhs
  vim.keymap.set('i', name, rhs, {
    expr = mapping.expr == 1,
    replace_keycodes = mapping.replace_keycodes == 1 or nil,
    remap = mapping.noremap == 0,
    silent = mapping.silent == 1,
  })
  return name
end

--- Set the keys of insert mode.
---@param keymaps table<string, string> keys by action
function M.set(keymaps)
  for action, key in pairs(keymaps) do
    local otherwise = keep(action, key)
    vim.keymap.set('i', key, function()
      return require('midspan')[action]() and '' or otherwise
    end, { expr = true, remap = true, desc = 'Midspan: ' .. action:gsub('_', ' ') })
  end
end

return M
