--- The command :Midspan.

local tell = require('midspan.tell')

local M = {}

local function status()
  local client_of = require('midspan.client')
  local client = client_of.any()
  if not client then
    tell.warn('the language server does not run; `:checkhealth midspan` says why')
    return
  end
  client_of.execute(client, 'midspan.status', nil, function(report)
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
  local config = vim.lsp.config[client_of.NAME]
  local missing = client_of.why_missing(config.cmd)
  if missing then
    tell.error(missing)
  else
    vim.lsp.enable(client_of.NAME, false)
    vim.lsp.enable(client_of.NAME)
  end
end

---@type table<string, fun(argument?: string)>
local COMMANDS = {
  status = status,
  restart = restart,
  toggle = function(scope)
    require('midspan.toggle').toggle(scope or 'all')
  end,
  why = function()
    require('midspan.why').ask()
  end,
  log = function()
    require('midspan.log').open()
  end,
}
local SCOPES = { 'all', 'filetype', 'buffer' }

--- Run `:Midspan` with these arguments.
---@param arguments string[]
function M.run(arguments)
  local name, argument = arguments[1], arguments[2]
  local scope_fits = argument == nil or (name == 'toggle' and vim.list_contains(SCOPES, argument))
  if not COMMANDS[name] or not scope_fits or #arguments > 2 then
    tell.error(':Midspan takes status, toggle [all|filetype|buffer], restart, why or log; not ' .. table.concat(arguments, ' '))
    return
  end
  COMMANDS[name](argument)
end

--- Return the completions of a command line's last word.
---@param line string
---@return string[]
function M.complete(line)
  local words = vim.split(line, '%s+')
  local choices = #words == 2 and vim.tbl_keys(COMMANDS) or (#words == 3 and words[2] == 'toggle' and SCOPES) or {}
  table.sort(choices)
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, words[#words])
  end, choices)
end

return M
