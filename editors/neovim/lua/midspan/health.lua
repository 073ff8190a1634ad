--- `:checkhealth midspan`.

local M = {}

local function check_neovim()
  if vim.fn.has('nvim-0.12') == 1 then
    vim.health.ok('Neovim ' .. tostring(vim.version()))
    return true
  end
  vim.health.error('Neovim 0.12 or newer is needed', 'Update Neovim: inline completion came with 0.12.')
  return false
end

---@return boolean
local function check_server()
  local cmd = vim.lsp.config.midspan.cmd
  if type(cmd) == 'function' then
    vim.health.ok('The language server is started by a function of your configuration')
    return true
  end
  local missing = require('midspan.client').why_missing()
  if missing then
    vim.health.error('The language server is missing: ' .. missing, {
      'Run `python3 -m venv ~/.midspan` and `~/.midspan/bin/pip install .` in a clone of Midspan;',
      'or run `midspan setup neovim` where Midspan is installed,',
      "or name its path: require('midspan').setup({ cmd = { '/path/to/midspan-lsp' } })",
    })
    return false
  end
  local done = vim.system(vim.list_extend({ unpack(cmd) }, { '--version' }), { timeout = 10000 }):wait()
  if done.code ~= 0 then
    vim.health.error(('%s does not run (exit status %d)'):format(cmd[1], done.code), 'Run it by hand: it says why.')
    return false
  end
  vim.health.ok(('%s (%s)'):format(vim.trim(done.stdout), vim.fn.exepath(cmd[1])))
  return true
end

local function check_enabled()
  if vim.lsp.is_enabled('midspan') then
    vim.health.ok('Midspan is set up')
  else
    vim.health.error('Midspan is not set up', "Call require('midspan').setup() in your configuration.")
  end
end

local MEASURING_MS = 20000

--- Say which larger model this machine would carry, if any. The server measures that once.
---@param client vim.lsp.Client
local function check_ladder(client)
  local asked = { command = 'midspan.status', arguments = { 'offer' } }
  local answer = client:request_sync('workspace/executeCommand', asked, MEASURING_MS)
  local offer = answer and answer.result and answer.result.offer
  if offer and offer ~= vim.NIL then
    vim.health.info(offer.text .. '; `:Midspan install` installs it')
  end
end

local function check_client()
  local client = require('midspan.client').any()
  if not client then
    vim.health.info('No buffer is served yet: open a file, then `:Midspan status` tells more')
    return
  end
  local status = require('midspan.status').of(client.id)
  if status and status.state == 'error' then
    vim.health.error('The engine: ' .. status.message, 'Run `midspan doctor` in a terminal, or `:Midspan restart`.')
  elseif status then
    vim.health.ok(('The engine: %s'):format(status.message))
  end
  check_ladder(client)
end

function M.check()
  vim.health.start('midspan')
  if not check_neovim() then
    return
  end
  if check_server() then
    check_enabled()
    check_client()
  end
end

return M
