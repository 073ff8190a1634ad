--- The options of setup(): they are checked here and turned into the language server's configuration.

local M = {}

---@class midspan.Options
---@field cmd? string[] the language server's command line; by default the one that is found
---@field filetypes? table<string, boolean> filetypes to turn off; all others are on
---@field held_back? boolean whether a sign says that the gate held a suggestion back
---@field keymaps? table<string, string|false> keys by action
---@field next_edit? boolean whether the next edit is offered
---@field settings? table<string, any> the language server's settings, such as budgetMs
---@field tab? midspan.Tab|midspan.Tab[] what <Tab> does besides

---@alias midspan.Tab 'by line'|'inside words only accept'

---@type midspan.Options
local DEFAULTS = {
  filetypes = {},
  held_back = false,
  keymaps = { next_edit = '<Tab>', dismiss_next_edit = '<Esc>' },
  next_edit = true,
  settings = {},
  tab = {},
}

local TABS = { 'by line', 'inside words only accept' }

local ALLOWED = {
  cmd = 'a list with a program and its arguments',
  filetypes = 'a table of filetypes and true or false',
  held_back = 'true or false',
  keymaps = 'a table of actions and keys',
  next_edit = 'true or false',
  settings = 'a table of settings',
  tab = ("'%s' or a list of these"):format(table.concat(TABS, "' or '")),
}

--- The actions that a key of insert mode can have.
local IN_INSERT_MODE = { 'accept', 'accept_word', 'accept_line', 'next', 'previous', 'dismiss', 'trigger', 'why' }

--- The actions that a key of normal mode has while a next edit is shown.
local IN_NORMAL_MODE = { 'next_edit', 'dismiss_next_edit' }

--- The actions that a key of visual mode can have.
local IN_VISUAL_MODE = { 'refill' }

local ACTIONS = vim.iter({ IN_INSERT_MODE, IN_NORMAL_MODE, IN_VISUAL_MODE }):flatten():totable()

--- Where the server is looked for. A Neovim that was started from a menu may lack the folders of pipx and uv, and the
--- environment of Midspan's README, in its PATH.
local PROGRAMS = { 'midspan-lsp', '~/.local/bin/midspan-lsp', '~/.midspan/bin/midspan-lsp', '~/.midspan/Scripts/midspan-lsp' }

--- What all calls of setup() have chosen so far; nil before the first.
---@type midspan.Options?
local chosen

--- Return what `midspan setup` wrote, if this plugin is its work.
---@return midspan.Options?
function M.installed()
  local found, options = pcall(require, 'midspan.installed')
  return found and options or nil
end

--- Return whether setup() was called.
---@return boolean
function M.is_set_up()
  return chosen ~= nil
end

---@return midspan.Options
local function defaults()
  local options = vim.deepcopy(DEFAULTS)
  options.keymaps = vim.tbl_extend('force', options.keymaps, (M.installed() or {}).keymaps or {})
  return options
end

--- Return the command line of the language server where the user named none: that of `midspan setup`, if its program is
--- still there, else the first that is found.
---@return string[]
function M.default_cmd()
  local installed = (M.installed() or {}).cmd
  local programs = vim.list_extend({ installed and installed[1] }, PROGRAMS)
  for _, program in ipairs(programs) do
    local path = vim.fn.expand(program)
    if vim.fn.executable(path) == 1 then
      return { path }
    end
  end
  return { 'midspan-lsp' }
end

---@param name string
---@param value any
---@return boolean
local function is_allowed(name, value)
  if name == 'next_edit' or name == 'held_back' then
    return type(value) == 'boolean'
  end
  if name == 'tab' then
    return vim.iter(type(value) == 'table' and value or { value }):all(function(each)
      return vim.list_contains(TABS, each)
    end)
  end
  if type(value) ~= 'table' then
    return false
  end
  if name == 'cmd' then
    return vim.islist(value) and type(value[1]) == 'string'
  end
  local wanted = ({ filetypes = 'boolean', keymaps = 'string' })[name]
  return not wanted or vim.iter(pairs(value)):all(function(key, each)
    return type(key) == 'string' and (type(each) == wanted or each == false)
  end)
end

--- Put the options of a call of setup() over those of earlier calls. Return all, and one line about the wrong ones.
---@param options? midspan.Options
---@return midspan.Options chosen
---@return string? problem
function M.read(options)
  local problems = {} ---@type string[]
  local function complain(line)
    table.insert(problems, line)
  end
  local all = chosen or defaults()
  chosen = all
  if type(options or {}) ~= 'table' then
    complain(('setup() takes a table, not a %s; it is ignored'):format(type(options)))
    options = {}
  end
  for name, value in pairs(options or {}) do
    if not ALLOWED[name] then
      local names = vim.tbl_keys(ALLOWED)
      table.sort(names)
      complain(('setup() has no option %s; there are %s'):format(name, table.concat(names, ', ')))
    elseif not is_allowed(name, value) then
      complain(('the option %s must be %s; it is ignored'):format(name, ALLOWED[name]))
    elseif name == 'settings' or name == 'filetypes' or name == 'keymaps' then
      all[name] = vim.tbl_deep_extend('force', all[name], value)
    else
      all[name] = value
    end
  end
  for action in pairs(all.keymaps) do
    if not vim.list_contains(ACTIONS, action) then
      complain(('keymaps has no action %s; there are %s'):format(action, table.concat(ACTIONS, ', ')))
      all.keymaps[action] = nil
    end
  end
  table.sort(problems)
  return all, problems[1] and table.concat(problems, '; ')
end

---@param actions string[]
---@return table<string, string>
local function keys_of(actions)
  local keys = {}
  for _, action in ipairs(actions) do
    keys[action] = M.current().keymaps[action] or nil
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

--- Return whether <Tab> has a meaning that the user chose.
---@param meaning midspan.Tab
---@return boolean
function M.tab_is(meaning)
  local tab = M.current().tab
  return vim.list_contains(type(tab) == 'table' and tab or { tab }, meaning)
end

--- Return the current options.
---@return midspan.Options
function M.current()
  return chosen or defaults()
end

--- Return the options as a configuration for vim.lsp.config. What the user has not chosen is not in it.
---@param options midspan.Options
---@return vim.lsp.Config
function M.for_client(options)
  local settings = vim.deepcopy(options.settings)
  if next(options.filetypes) then
    -- Neovim sends the filetype to the server as the language.
    settings.languages = vim.tbl_extend('force', settings.languages or {}, options.filetypes)
  end
  -- Neovim would send an empty Lua table as a list.
  return { cmd = options.cmd, settings = next(settings) and { midspan = settings } or nil }
end

return M
