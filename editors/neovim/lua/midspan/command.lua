--- The command :Midspan.

local tell = require('midspan.tell')

local M = {}

local SNOOZE_MINUTES, LONGEST_SNOOZE = 5, 7 * 24 * 60

--- Have the language server execute a command, or say that it does not run.
---@param command string
---@param arguments? any[]
---@param on_result fun(result: any)
local function execute(command, arguments, on_result)
  local client_of = require('midspan.client')
  local client = client_of.any()
  if client then
    client_of.execute(client, command, arguments, on_result)
  else
    tell.warn('the language server does not run; `:checkhealth midspan` says why')
  end
end

local function status()
  -- The first time the machine is measured for it, which takes some seconds.
  execute('midspan.status', { 'offer' }, function(report)
    local lines = require('midspan.status').readable(report)
    vim.api.nvim_echo({ { table.concat(lines, '\n') } }, true, {})
  end)
end

--- Restart the engine. If the language server has stopped, start the server instead.
local function restart()
  local client_of = require('midspan.client')
  local client = client_of.any()
  if client then
    tell.info('the engine restarts')
    client_of.execute(client, 'midspan.restartEngine')
    return
  end
  local missing = client_of.why_missing()
  if missing then
    tell.error(missing)
  else
    vim.lsp.enable(client_of.NAME, false)
    vim.lsp.enable(client_of.NAME)
  end
end

--- Install the larger model that `:Midspan status` names. The server's progress bar and a message say how that goes.
local function install()
  execute('midspan.installModel', nil, function(begun)
    tell.info(('%s is being installed; until it answers, the model in use goes on'):format(begun.model))
  end)
end

--- Return how many minutes an argument says, or nil if it is no number.
---@param argument? string
---@return number?
local function minutes_of(argument)
  local minutes = tonumber(argument or SNOOZE_MINUTES)
  return minutes and minutes >= 0 and minutes <= LONGEST_SNOOZE and minutes or nil
end

---@param what? 'jump'|'accept'|'dismiss'|'on'|'off'
local function next_edit(what)
  if what == 'on' or what == 'off' then
    require('midspan.next_edit_requests').switch(what == 'on')
    tell.info('the next edit is ' .. what)
  elseif not require('midspan.next_edit')[what or 'forward']() then
    tell.warn('no next edit is offered')
  end
end

--- Return a command that previews an action. Selected lines are the scope, if there are any.
---@param action string
---@param default string
---@return fun(scope?: string, lines?: { first: integer, last: integer })
local function preview_of(action, default)
  return function(scope, lines)
    require('midspan.bulk').start(action, scope or (lines and 'selection' or default), lines)
  end
end

local SCOPES = { 'file', 'selection', 'workspace' }

---@class midspan.Subcommand
---@field run fun(argument?: string, lines?: { first: integer, last: integer })
---@field arguments? string[]
---@field also? fun(argument: string): boolean other arguments that it takes
---@field also_named? string

---@type table<string, midspan.Subcommand>
local COMMANDS = {
  status = { run = status },
  restart = { run = restart },
  install = { run = install },
  toggle = {
    run = function(scope)
      require('midspan.toggle').toggle(scope or 'all')
    end,
    arguments = { 'all', 'buffer', 'filetype' },
    also = function(argument)
      return vim.list_contains(vim.fn.getcompletion(argument, 'filetype'), argument)
    end,
    also_named = 'a language',
  },
  snooze = {
    run = function(argument)
      require('midspan.toggle').snooze(assert(minutes_of(argument)))
    end,
    arguments = { '0', '5', '30', '60' },
    also = function(argument)
      return minutes_of(argument) ~= nil
    end,
    also_named = 'minutes',
  },
  automatic = {
    run = function(state)
      require('midspan.toggle').automatic(state)
    end,
    arguments = { 'off', 'on' },
  },
  trigger = {
    run = function()
      require('midspan.ask').from_anywhere()
    end,
  },
  why = {
    run = function()
      require('midspan.why').ask()
    end,
  },
  log = {
    run = function()
      require('midspan.log').open()
    end,
  },
  ['repeat'] = { run = preview_of('repeat', 'workspace'), arguments = { 'file', 'workspace' } },
  stubs = { run = preview_of('stubs', 'file'), arguments = SCOPES },
  annotate = { run = preview_of('annotations', 'file'), arguments = SCOPES },
  docstrings = { run = preview_of('docstrings', 'file'), arguments = SCOPES },
  write = {
    run = function()
      require('midspan.apply_edit').write()
    end,
  },
  undo = {
    run = function()
      require('midspan.apply_edit').undo()
    end,
  },
  refill = { run = preview_of('refill', 'selection') },
  cancel = {
    run = function()
      require('midspan.bulk').cancel_and_tell()
    end,
  },
  nextedit = { run = next_edit, arguments = { 'accept', 'dismiss', 'jump', 'off', 'on' } },
}

---@return string[]
local function names()
  local found = vim.tbl_keys(COMMANDS)
  table.sort(found)
  return found
end

--- Run `:Midspan` with these arguments.
---@param arguments string[]
---@param lines? { first: integer, last: integer } the selected lines, counted from 1
function M.run(arguments, lines)
  local name, argument = arguments[1], arguments[2]
  local command = COMMANDS[name]
  local function is_taken()
    return vim.list_contains(command.arguments or {}, argument) or (command.also and command.also(argument))
  end
  if not command then
    tell.error((':Midspan takes %s; not %s'):format(table.concat(names(), ', '), name))
  elseif #arguments > 2 or (argument and not is_taken()) then
    local allowed = table.concat(vim.list_extend({ command.also_named }, command.arguments or {}), ', ')
    allowed = allowed ~= '' and allowed or 'nothing'
    tell.error((':Midspan %s takes %s; not %s'):format(name, allowed, table.concat(arguments, ' ', 2)))
  else
    command.run(argument, lines)
  end
end

--- Return the completions of a command line's last word.
---@param line string
---@return string[]
function M.complete(line)
  local words = vim.split(line, '%s+')
  local command = COMMANDS[words[2]]
  local choices = #words == 2 and names() or (#words == 3 and command and command.arguments) or {}
  if words[2] == 'toggle' and #words == 3 then
    choices = vim.list_extend(vim.list_slice(choices), vim.fn.getcompletion(words[3], 'filetype'))
  end
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, words[#words])
  end, choices)
end

return M
