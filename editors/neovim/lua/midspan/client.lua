--- The client of the language server: how it is started, and which answers reach Neovim.

local ghost = require('midspan.ghost')
local log = require('midspan.log')
local status = require('midspan.status')
local tell = require('midspan.tell')
local toggle = require('midspan.toggle')

local M = {}

M.NAME = 'midspan'
local INLINE_COMPLETION = 'textDocument/inlineCompletion'
local INVOKED = vim.lsp.protocol.InlineCompletionTriggerKind.Invoked

--- Buffers whose next request was made by hand.
---@type table<integer, true>
local invoked = {}

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

--- Let the next request of a buffer ask for several candidates.
---@param buf integer
function M.invoke(buf)
  invoked[buf] = true
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

--- Return a text that names the cursor's position and the version of the buffer. An answer is valid only for this.
---@param buf integer
---@return string
local function moment(buf)
  local window = vim.fn.bufwinid(buf)
  local cursor = window > 0 and vim.api.nvim_win_get_cursor(window) or { 0, 0 }
  return ('%d %d:%d'):format(vim.api.nvim_buf_get_changedtick(buf), cursor[1], cursor[2])
end

--- Filter the answers to Neovim's requests: Neovim itself shows late answers, and keeps the old suggestion after an
--- error.
---@param client vim.lsp.Client
local function guard_answers(client)
  local request = client.request
  client.request = function(self, method, params, handler, buf)
    if method ~= INLINE_COMPLETION or not handler then
      return request(self, method, params, handler, buf)
    end
    local asked = vim._resolve_bufnr(buf)
    if toggle.is_off_in(asked) then
      handler(nil, { items = {} }, { client_id = client.id, method = method, bufnr = asked, params = params })
      return true
    end
    if invoked[asked] then
      invoked[asked] = nil
      params.context.triggerKind = INVOKED
    end
    local then_ = moment(asked)
    return request(self, method, params, function(err, result, context)
      if not vim.api.nvim_buf_is_valid(asked) or moment(asked) ~= then_ then
        return
      end
      local items = not err and result and (result.items or result) or {}
      ghost.remember(asked, client, items)
      handler(nil, { items = items }, context)
    end, buf)
  end
end

---@param client vim.lsp.Client
---@param buf integer
local function attached(client, buf)
  vim.lsp.inline_completion.enable(true, { bufnr = buf })
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
    on_init = guard_answers,
    on_attach = attached,
    -- If a server crashes, Neovim itself tells the user, and says where its log is.
    on_exit = function(_, _, client_id)
      status.forget(client_id)
      vim.schedule(require('midspan.next_edit_offer').hide)
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
