--- The options of setup(): they are checked here and turned into the language server's configuration.

local M = {}

---@class midspan.Options
---@field cmd? string[] the language server's command line
---@field filetypes? table<string, boolean> filetypes to turn off; all others are on
---@field keymaps? table<string, string|false> keys by action
---@field next_edit? boolean whether the next edit is offered
---@field settings? table<string, any> the language server's settings, such as budgetMs

---@type midspan.Options
local DEFAULTS = {
  cmd = { 'midspan-lsp' },
  filetypes = {},
  keymaps = { next_edit = '<Tab>', dismiss_next_edit = '<Esc>' },
  next_edit = true,
  settings = {},
}

local ALLOWED = {
  cmd = 'a list with a program and its arguments',
  filetypes = 'a table of filetypes and true or false',
  keymaps = 'a table of actions and keys',
  next_edit = 'true or false',
  settings = 'a table of settings',
}

--- The actions that a key of insert mode can have.
local IN_INSERT_MODE = { 'accept', 'accept_word', 'accept_line', 'next', 'previous', 'dismiss', 'trigger' }

--- The actions that a key of normal mode has while a next edit is shown.
local IN_NORMAL_MODE = { 'next_edit', 'dismiss_next_edit' }

--- The actions that a key of visual mode can have.
local IN_VISUAL_MODE = { 'refill' }

local ACTIONS = vim.iter({ IN_INSERT_MODE, IN_NORMAL_MODE, IN_VISUAL_MODE }):flatten():totable()

---@type midspan.Options
local current = vim.deepcopy(DEFAULTS)

---@param name string
---@param value any
---@return boolean
local function is_allowed(name, value)
  if name == 'next_edit' then
    return type(value) == 'boolean'
  end
  if type(value) ~= 'table' then
    return false
  end
  if name == 'cmd' then
    return vim.islist(value) and type(value[1]) == 'string'
  end
  local wanted = ({ filetypes = 'boolean', keymaps = 'string' })[name]
  return not wanted or vim.iter(pairs(value)):all(function(key, each)
    local is_no_key = each == false and vim.list_contains(IN_NORMAL_MODE, key)
    return type(key) == 'string' and (type(each) == wanted or is_no_key)
  end)
end

--- Return the options, with defaults for missing and wrong ones, and one line about the first wrong one.
---@param options? midspan.Options
---@return midspan.Options chosen
---@return string? problem
function M.read(options)
  local problem ---@type string?
  local function complain(line)
    problem = problem or line
  end
  current = vim.deepcopy(DEFAULTS)
  if type(options or {}) ~= 'table' then
    complain(('setup() takes a table, not a %s; defaults are used'):format(type(options)))
    options = {}
  end
  for name, value in pairs(options or {}) do
    if not ALLOWED[name] then
      local names = table.concat(vim.tbl_keys(DEFAULTS), ', ')
      complain(('setup() has no option %s; there are %s'):format(name, names))
    elseif not is_allowed(name, value) then
      complain(('the option %s must be %s; the default is used'):format(name, ALLOWED[name]))
    else
      -- A key of normal mode is set by default, so it stays if the user names other keys.
      current[name] = name == 'keymaps' and vim.tbl_extend('force', current.keymaps, value) or value
    end
  end
  for action in pairs(current.keymaps) do
    if not vim.list_contains(ACTIONS, action) then
      complain(('keymaps has no action %s; there are %s'):format(action, table.concat(ACTIONS, ', ')))
      current.keymaps[action] = nil
    end
  end
  return current, problem
end

---@param actions string[]
---@return table<string, string>
local function keys_of(actions)
  local keys = {}
  for _, action in ipairs(actions) do
    keys[action] = current.keymaps[action]
  end
  return keys
end

--- Return the keys of insert mode, by action.
---@return table<string, string>
function M.insert_keys()
  return keys_of(IN_INSERT_MODE)
end

--- Return the keys of visual mode, by action: each is a command of :Midspan.
---@return table<string, string>
function M.visual_keys()
  return keys_of(IN_VISUAL_MODE)
end

--- Return the current options.
---@return midspan.Options
function M.current()
  return current
end

--- Return these options as a configuration for vim.lsp.config.
---@param options midspan.Options
---@return vim.lsp.Config
function M.for_client(options)
  local settings = vim.deepcopy(options.settings)
  if next(options.filetypes) then
    -- Neovim sends the filetype to the server as the language.
    settings.languages = vim.tbl_extend('force', settings.languages or {}, options.filetypes)
  end
  -- Neovim would send an empty Lua table as a list.
  return { cmd = options.cmd, settings = { midspan = next(settings) and settings or vim.empty_dict() } }
end

return M
