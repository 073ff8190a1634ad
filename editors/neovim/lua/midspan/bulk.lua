--- Bulk edits: the server is asked what an action would change, and the preview shows it.

local client_of = require('midspan.client')
local held_keys = require('midspan.held_keys')
local tell = require('midspan.tell')

local M = {}

local BULK_EDIT = 'midspan/bulkEdit'
local CANCEL_KEY = '<C-c>'
local FAILED = vim.lsp.protocol.ErrorCodes.RequestFailed

---@class midspan.BulkAction
---@field action 'repeat'|'stubs'|'annotations'|'docstrings'|'refill'|'paste'
---@field scope 'selection'|'file'|'workspace'
---@field uri string
---@field version integer
---@field range lsp.Range

---@class midspan.BulkPlace
---@field id integer
---@field uri string
---@field path string
---@field range lsp.Range
---@field before string whole lines
---@field after string whole lines
---@field reason string
---@field doubtful boolean
---@field wide boolean

---@class midspan.BulkOmission
---@field uri string
---@field path string
---@field line integer counted from 0
---@field reason string

---@class midspan.BulkEdit
---@field id integer
---@field title string
---@field rule string
---@field places midspan.BulkPlace[]
---@field leftOut midspan.BulkOmission[]
---@field reached string[]
---@field exclusive boolean
---@field following midspan.BulkPlace[] what follows the chosen places of its file

---@class midspan.Search
---@field client vim.lsp.Client
---@field request integer
---@field finish fun()

---@type midspan.Search?
local running

local searches = 0

---@param line string
local function show_line(line)
  local room = math.max(10, vim.o.columns - 14)
  local short = vim.fn.strcharpart(line:gsub('%s+', ' '), 0, room)
  vim.api.nvim_echo({ { short } }, false, {})
end

--- Show the progress that the server reports with `token`.
---@param token string
---@return fun() stop
local function follow_progress(token)
  local title = 'searching'
  local function show(event)
    local params = event.data.params
    local value = params.token == token and params.value or {}
    title = value.title and value.title:gsub('^Midspan: ', '') or title
    if value.kind == 'begin' or value.kind == 'report' then
      local share = value.percentage and (' %d %%'):format(value.percentage) or ''
      local message = value.message and (' ' .. value.message) or ''
      show_line(('Midspan: %s%s%s; Ctrl-C cancels'):format(title, share, message))
    end
  end
  local autocmd = vim.api.nvim_create_autocmd('LspProgress', { callback = show })
  return function()
    vim.api.nvim_del_autocmd(autocmd)
    show_line('')
  end
end

--- Cancel the search that runs. Returns false if none does.
---@return boolean
function M.cancel()
  if not running then
    return false
  end
  running.client:cancel_request(running.request)
  -- Neovim drops the answer to a cancelled request, so this is the end of it.
  running.finish()
  return true
end

local function cancel_and_tell()
  if M.cancel() then
    tell.info('cancelled; nothing is changed')
  else
    tell.warn('nothing runs that could be cancelled')
  end
end
M.cancel_and_tell = cancel_and_tell

--- Ask what an action would change. A search that runs is cancelled.
---@param client vim.lsp.Client
---@param action midspan.BulkAction
---@param on_edit fun(edit: midspan.BulkEdit)
function M.ask(client, action, on_edit)
  M.cancel()
  searches = searches + 1
  local token = ('midspan-search-%d'):format(searches)
  local stop_progress = follow_progress(token)
  local release = held_keys.hold(vim.api.nvim_get_current_buf(), CANCEL_KEY, cancel_and_tell, 'cancel the search')
  local function finish()
    running = nil
    stop_progress()
    release()
  end
  local params = { action = action, workDoneToken = token }
  local mine = {} ---@type midspan.Search
  -- Without a buffer here, Neovim first sends the latest changes of all buffers.
  local sent, request = client:request(BULK_EDIT, params, function(err, edit)
    if running ~= mine then
      return
    end
    finish()
    if err and err.code == FAILED then
      tell.warn(err.message)
    elseif err then
      tell.error(err.message)
    else
      on_edit(edit)
    end
  end)
  if not sent then
    finish()
    tell.error('the language server has stopped; `:Midspan restart` starts it')
    return
  end
  mine.client, mine.request, mine.finish = client, request, finish
  running = mine
end

--- Do what a code action of the server says: ask for its places and show them.
---@param command lsp.Command
---@param context { client_id: integer }
function M.preview(command, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if client then
    require('midspan.preview').open(client, command.arguments[1])
  end
end

--- Preview an action on the current buffer, as `:Midspan stubs` and the like do.
---@param action string
---@param scope string
---@param lines? { first: integer, last: integer } the selected lines, counted from 1
function M.start(action, scope, lines)
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.of_or_tell(buf)
  if not client then
    return
  end
  local range = vim.lsp.util.make_range_params(0, client.offset_encoding).range
  if lines then
    local last = vim.api.nvim_buf_get_lines(buf, lines.last - 1, lines.last, false)[1]
    range.start = { line = lines.first - 1, character = 0 }
    range['end'] = { line = lines.last - 1, character = vim.str_utfindex(last, client.offset_encoding) }
  end
  require('midspan.preview').open(client, {
    action = action,
    scope = scope,
    uri = vim.uri_from_bufnr(buf),
    version = vim.lsp.util.buf_versions[buf],
    range = range,
  })
end

return M
