--- The client of the language server: how it is started, and what its messages do.

local log = require('midspan.log')
local status = require('midspan.status')
local tell = require('midspan.tell')

local M = {}

M.NAME = 'midspan'

--- Return the client of a buffer, by default of the current one.
---@param buf? integer
---@return vim.lsp.Client?
function M.of(buf)
  return vim.lsp.get_clients({ name = M.NAME, bufnr = buf or 0 })[1]
end

--- Return the client of a buffer. If there is none, tell the user, and return nil.
---@param buf integer
---@return vim.lsp.Client?
function M.of_or_tell(buf)
  local client = M.of(buf)
  if not client then
    tell.warn('the language server does not serve this buffer; `:checkhealth midspan` says why')
  end
  return client
end

--- Return the client of the current buffer, else any client of ours, else nil.
---@return vim.lsp.Client?
function M.any()
  return M.of() or vim.lsp.get_clients({ name = M.NAME })[1]
end

--- Return why the language server cannot be started and what to do, or nil if it can.
---@param cmd string[]
---@return string?
function M.why_missing(cmd)
  if vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  return ('%s is not found; `pip install .` in a clone of Midspan brings it, or name its path as cmd in setup()'):format(cmd[1])
end

--- Send a command to the server.
---@param client vim.lsp.Client
---@param name string
---@param arguments any[]?
---@param on_result? fun(result: any)
function M.execute(client, name, arguments, on_result)
  client:request('workspace/executeCommand', { command = name, arguments = arguments }, function(err, result)
    if err then
      tell.error(err.message)
    elseif on_result then
      on_result(result)
    end
  end)
end

--- Keep Neovim from asking for suggestions too, where the user turned that on: ask.lua asks.
---@param client vim.lsp.Client
local function ask_alone(client)
  client.server_capabilities.inlineCompletionProvider = nil
end

---@param client vim.lsp.Client
---@param buf integer
local function attached(client, buf)
  require('midspan.ask').follow(buf)
  require('midspan.cursor').follow(buf)
  status.begin(client.id)
  require('midspan.next_edit_requests').start()
end

local LEVELS = { tell.error, tell.warn, tell.info, tell.info }

--- Return our default configuration for vim.lsp.config. The user's own goes over it.
---@return vim.lsp.Config
function M.config()
  return {
    cmd = { 'midspan-lsp' },
    root_markers = { '.git' },
    capabilities = {
      -- Code actions then come with our command; otherwise Neovim would apply them unseen.
      experimental = { midspanPreview = true },
      -- Neovim can do this, and does not say so. Only such an edit has the versions of the files.
      workspace = { workspaceEdit = { documentChanges = true } },
    },
    commands = {
      ['midspan.preview'] = function(command, context)
        require('midspan.bulk').preview(command, context)
      end,
    },
    -- The server reads the settings from us only after its start, when the first request may be there already: then it
    -- has to know which files to leave alone.
    before_init = function(params, config)
      local settings = vim.tbl_get(config.settings or {}, 'midspan')
      params.initializationOptions = settings and next(settings) and settings or nil
    end,
    on_init = ask_alone,
    on_attach = attached,
    -- If a server crashes, Neovim itself tells the user, and says where its log is.
    on_exit = function(_, _, client_id)
      status.forget(client_id)
      vim.schedule(function()
        require('midspan.ghost').hide(vim.api.nvim_get_current_buf())
        require('midspan.next_edit_offer').hide()
      end)
    end,
    handlers = {
      ['workspace/applyEdit'] = function(...)
        return require('midspan.apply_edit').handle(...)
      end,
      ['midspan/status'] = function(_, params, context)
        status.update(context.client_id, params)
      end,
      ['window/logMessage'] = function(_, params)
        log.add(params)
      end,
      ['window/showMessage'] = function(_, params)
        (LEVELS[params.type] or tell.info)(params.message)
      end,
    },
  }
end

return M
