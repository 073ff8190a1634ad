--- The client of the language server: how it is started, and what its messages do.

local log = require('midspan.log')
local status = require('midspan.status')
local tell = require('midspan.tell')

local M = {}

M.NAME = 'midspan'

--- A server that has ended so often within so many milliseconds is not started again.
local MOST_ENDS, WINDOW_MS = 5, 180000

--- When servers ended by themselves, in milliseconds.
---@type integer[]
local ends = {}

--- Return the client of a buffer, by default of the current one.
---@param buf? integer
---@return vim.lsp.Client?
function M.of(buf)
  return vim.lsp.get_clients({ name = M.NAME, bufnr = buf or 0 })[1]
end

--- Return why a buffer has no client, and what to do. Neovim starts a server where there is a filetype.
---@param buf integer
---@return string
local function why_none(buf)
  if vim.bo[buf].buftype ~= '' then
    return ('this buffer is no file but of the kind %s, which is left alone'):format(vim.bo[buf].buftype)
  elseif vim.bo[buf].filetype == '' then
    return 'this buffer has no filetype, so it is left alone; `:setfiletype python`, say, gives it one'
  end
  return 'the language server does not serve this buffer; `:checkhealth midspan` says why'
end

--- Return the client of a buffer. If there is none, tell the user why, and return nil.
---@param buf integer
---@return vim.lsp.Client?
function M.of_or_tell(buf)
  local client = M.of(buf)
  if not client then
    tell.warn(why_none(buf))
  end
  return client
end

--- Return the client of the current buffer, else any client of ours, else nil.
---@return vim.lsp.Client?
function M.any()
  return M.of() or vim.lsp.get_clients({ name = M.NAME })[1]
end

--- Return why the language server cannot be started and what to do, or nil if it can.
---@return string?
function M.why_missing()
  local cmd = vim.lsp.config[M.NAME].cmd
  if type(cmd) == 'function' or vim.fn.executable(cmd[1]) == 1 then
    return nil
  end
  return ('%s is not found; `pip install .` in a clone of Midspan brings it, or name its path as cmd in setup()'):format(cmd[1])
end

--- Change settings of the servers that run.
---@param settings table<string, any> by name; those that are not named stay
function M.use_settings(settings)
  for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME })) do
    local now = vim.tbl_deep_extend('force', client.settings or {}, { midspan = settings })
    if not vim.deep_equal(now, client.settings) then
      client.settings = now
      client:notify('workspace/didChangeConfiguration', { settings = now })
    end
  end
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

--- Neovim gives all buffers without a name this URI.
local NAMELESS, NAMED = 'file://', 'untitled:Neovim-%d'

--- Return the buffer that a URI of the server's is of.
---@param uri string
---@return integer
function M.buf_of(uri)
  return tonumber(uri:match('^untitled:Neovim%-(%d+)$')) or vim.uri_to_bufnr(uri)
end

--- Give each buffer without a name a URI of its own in what is sent about it: the server would take them for one.
---@param client vim.lsp.Client
local function name_the_nameless(client)
  local function name(params, buf)
    if type(params) ~= 'table' then
      return
    end
    for _, each in pairs({ params, params.textDocument or nil, (params.arguments or {})[1] }) do
      if type(each) == 'table' and each.uri == NAMELESS then
        each.uri = NAMED:format(buf and buf ~= 0 and buf or vim.api.nvim_get_current_buf())
      end
    end
  end
  local notify, request = client.notify, client.request
  function client:notify(method, params, buf)
    name(params, buf)
    return notify(self, method, params, buf)
  end
  function client:request(method, params, handler, buf)
    name(params, buf)
    return request(self, method, params, handler, buf)
  end
end

--- Have a buffer served under the name that it gets. Neovim drops what follows a buffer when it gets its first name, its
--- own reports to servers too.
---@param buf integer
local function follow_its_name(buf)
  local group = vim.api.nvim_create_augroup('midspan.nameless.' .. buf, { clear = true })
  vim.api.nvim_create_autocmd({ 'BufWritePost', 'BufFilePost' }, {
    group = group,
    callback = function(event)
      if event.buf ~= buf or vim.api.nvim_buf_get_name(buf) == '' then
        return
      end
      vim.api.nvim_del_augroup_by_id(group)
      for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME, bufnr = buf })) do
        client:notify('textDocument/didClose', { textDocument = { uri = NAMED:format(buf) } }, buf)
        vim.lsp.buf_detach_client(buf, client.id)
        vim.lsp.buf_attach_client(buf, client.id)
      end
    end,
  })
end

--- Start a server again that ended by itself; one that ends again and again stays ended.
---@param id integer
local function start_again(id)
  local now = vim.uv.now()
  ends = vim.tbl_filter(function(time)
    return now - time < WINDOW_MS
  end, ends)
  table.insert(ends, now)
  if #ends >= MOST_ENDS then
    tell.error(('the language server ended %d times within 3 minutes; `:Midspan restart` starts it'):format(#ends))
    return
  end
  local function start()
    -- Neovim may not know yet that the client is gone.
    if vim.lsp.get_client_by_id(id) then
      vim.defer_fn(start, 50)
    elseif vim.lsp.is_enabled(M.NAME) then
      vim.lsp.enable(M.NAME)
    end
  end
  start()
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
  require('midspan.macro').follow()
  if vim.api.nvim_buf_get_name(buf) == '' then
    follow_its_name(buf)
  end
  status.begin(client.id)
  require('midspan.next_edit_requests').start()
end

local LEVELS = { tell.error, tell.warn, tell.info, tell.info }

--- Return our default configuration for vim.lsp.config. The user's own goes over it.
---@return vim.lsp.Config
function M.config()
  return {
    cmd = require('midspan.config').default_cmd(),
    root_markers = { '.git' },
    capabilities = {
      -- Code actions then come with our command; otherwise Neovim would apply them unseen.
      experimental = { midspanPreview = true, midspanDiagnostics = true },
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
    on_init = { ask_alone, name_the_nameless },
    on_attach = attached,
    -- If a server crashes, Neovim itself tells the user, and says where its log is.
    on_exit = function(code, signal, client_id)
      status.forget(client_id)
      vim.schedule(function()
        if vim.v.exiting ~= vim.NIL then
          return
        end
        require('midspan.ghost').hide(vim.api.nvim_get_current_buf())
        require('midspan.next_edit_offer').hide()
        if code ~= 0 or signal ~= 0 then
          start_again(client_id)
        end
      end)
    end,
    handlers = {
      ['workspace/applyEdit'] = function(...)
        return require('midspan.apply_edit').handle(...)
      end,
      ['midspan/status'] = function(_, params, context)
        status.update(context.client_id, params)
      end,
      -- Servers do not see what other servers report: a model for edits may read it.
      ['midspan/diagnostics'] = function(_, params)
        local severity = { min = vim.diagnostic.severity.WARN }
        return vim.tbl_map(function(one)
          return { line = one.lnum, message = one.message }
        end, vim.diagnostic.get(M.buf_of(params.uri), { severity = severity }))
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
