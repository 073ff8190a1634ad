--- The keys that the user named. If no suggestion is shown, a key does what it did before.

local menu = require('midspan.menu')

local M = {}

local before_prefix = '<Plug>(midspan-else-%s)'
local OURS, USERS, NEOVIMS = 'Midspan: ', 'before Midspan', 'Neovim itself'

--- The keys that are set, each with its mode and the mapping it had before.
---@type { key: string, mode: 'i'|'x', before: table<string, any> }[]
local keys_set = {}

--- Keys that no terminal can mistake for a typed <Esc> and the key.
local MOVES = { 'Left', 'Right', 'Up', 'Down', 'Home', 'End', 'PageUp', 'PageDown', 'Insert', 'Del' }

--- Return whether a key jumps to another place of the snippet that the user fills in: then it does that.
---@param key string
---@return boolean
local function jumps(key)
  for each, direction in pairs({ ['<Tab>'] = 1, ['<S-Tab>'] = -1 }) do
    if vim.keycode(each) == vim.keycode(key) then
      return vim.snippet.active({ direction = direction })
    end
  end
  return false
end

--- Return what Neovim does with a key that has no mapping. A typed <M-x> without one is <Esc> and x, but only if it is
--- typed; here it would write "<M-x>" into the text. <M-Right>, pressed for one word more than there is, does nothing:
--- after an <Esc> what the user types next would be commands. Nor does a function key, which would write its name.
---@param key string
---@return string keys
---@return boolean remap
local function built_in(key)
  if key:match('^<[%a-]*F%d+>$') then
    return '<Nop>', false
  end
  local plain = key:match('^<[MAma]%-(.+)>$')
  if not plain or plain:match('^%a%-.') then
    return key, false
  end
  if vim.list_contains(MOVES, plain) then
    return '<Nop>', false
  end
  return '<Esc>' .. (vim.fn.strchars(plain) > 1 and ('<%s>'):format(plain) or plain), true
end

--- Return whether a key is <Tab> inside a word, where the user wants it to accept and nothing else.
---@param key string
---@return boolean
local function only_accepts(key)
  if vim.keycode(key) ~= '\t' or not require('midspan.config').tab_is('inside words only accept') then
    return false
  end
  local col, line = vim.api.nvim_win_get_cursor(0)[2], vim.api.nvim_get_current_line()
  return vim.fn.match(line:sub(1, col), [[\k$]]) >= 0 and vim.fn.match(line:sub(col + 1), [[^\k]]) >= 0
end

--- Save the old meaning of a key under a name of ours: its mapping, or what Neovim does with it.
---@param action string
---@param key string
---@return string name
---@return boolean is_users whether the user or a plugin had mapped it
local function keep(action, key)
  local name = before_prefix:format(action)
  local mapping = vim.fn.maparg(key, 'i', false, true)
  local kept = vim.fn.maparg(name, 'i', false, true)
  local is_ours = vim.startswith(mapping.desc or '', OURS)
  if is_ours and kept.desc then
    return name, kept.desc == USERS
  end
  if vim.tbl_isempty(mapping) or mapping.buffer == 1 or is_ours then
    local keys, remap = built_in(key)
    vim.keymap.set('i', name, keys, { remap = remap, desc = NEOVIMS })
    return name, false
  end
  -- Neovim maps <Tab> itself, to jump in a snippet.
  local desc = vim.startswith(mapping.desc or '', 'vim.snippet') and NEOVIMS or USERS
  vim.keymap.set('i', name, mapping.callback or mapping.rhs, {
    expr = mapping.expr == 1,
    replace_keycodes = mapping.replace_keycodes == 1 or nil,
    remap = mapping.noremap == 0,
    silent = mapping.silent == 1,
    desc = desc,
  })
  return name, desc == USERS
end

--- Note what a key does before it becomes ours, so that another setup() can give it back.
---@param mode 'i'|'x'
---@param key string
local function note(mode, key)
  local before = vim.fn.maparg(key, mode, false, true)
  table.insert(keys_set, { key = key, mode = mode, before = before.buffer == 0 and before or {} })
end

--- Give the keys of an earlier setup() back.
function M.give_back()
  for _, each in ipairs(keys_set) do
    if vim.startswith(vim.fn.maparg(each.key, each.mode, false, true).desc or '', OURS) then
      vim.keymap.del(each.mode, each.key)
      if next(each.before) then
        vim.fn.mapset(each.mode, false, each.before)
      end
    end
  end
  keys_set = {}
end

--- Set the keys of insert mode. While Neovim's completion menu is open, the keys that it knows and those that the user
--- had mapped do what they did before; so do those that jump in a snippet while there is a place to jump to.
---@param keymaps table<string, string> keys by action
function M.set(keymaps)
  for action, key in pairs(keymaps) do
    local otherwise, is_users = keep(action, key)
    local is_for_menu = is_users or menu.knows(key)
    note('i', key)
    vim.keymap.set('i', key, function()
      local is_others = jumps(key) or (is_for_menu and menu.is_open())
      local is_ours = not is_others and require('midspan')[action]()
      if not is_ours and (is_users or is_others or not only_accepts(key)) then
        vim.api.nvim_feedkeys(vim.keycode(otherwise), 'im', false)
      end
    end, { desc = OURS .. action:gsub('_', ' ') })
  end
end

--- Set the keys of visual mode. Each runs the command of :Midspan with its name on the selected lines.
---@param keymaps table<string, string> keys by action
function M.set_visual(keymaps)
  for action, key in pairs(keymaps) do
    note('x', key)
    vim.keymap.set('x', key, (':Midspan %s<CR>'):format(action), { silent = true, desc = OURS .. action })
  end
end

return M
