--- The status that the server reports, for the status line and `:Midspan status`.

local M = {}

---@class midspan.Status
---@field state 'idle'|'starting'|'ready'|'busy'|'off'|'error'
---@field message string
---@field model? string
---@field medianMs? number
---@field isServer? boolean whether a server is in the model's place
---@field memory? string
---@field snoozedUntil? number seconds since the epoch

---@type table<integer, midspan.Status>
local statuses = {}

---@param client_id integer
local function changed(client_id)
  vim.api.nvim_exec_autocmds('User', { pattern = 'MidspanStatus', data = M.of(client_id), modeline = false })
  vim.cmd.redrawstatus()
end

--- Show a new client as starting, unless it has already reported its status.
---@param client_id integer
function M.begin(client_id)
  if not statuses[client_id] then
    M.update(client_id, { state = 'starting', message = 'Starting the language server.' })
  end
end

---@param client_id integer
---@param status midspan.Status
function M.update(client_id, status)
  -- Values that the server does not know arrive as vim.NIL, which counts as true in Lua.
  statuses[client_id] = vim.iter(status):fold({}, function(known, name, value)
    known[name] = value ~= vim.NIL and value or nil
    return known
  end)
  changed(client_id)
end

---@param client_id integer
function M.forget(client_id)
  statuses[client_id] = nil
  vim.schedule(vim.cmd.redrawstatus)
end

---@param client_id integer
---@return midspan.Status?
function M.of(client_id)
  return statuses[client_id]
end

--- Return the status line's text for the current buffer.
---@return string
function M.line()
  local client = require('midspan.client').of()
  local status = client and statuses[client.id]
  if not status then
    return ''
  end
  if require('midspan.toggle').is_off_in(0) then
    return 'Midspan off'
  end
  if status.snoozedUntil then
    return 'Midspan snoozed until ' .. os.date('%H:%M', status.snoozedUntil)
  end
  if vim.list_contains({ 'ready', 'idle' }, status.state) and not require('midspan.toggle').is_automatic(client) then
    return 'Midspan when asked'
  end
  if status.state == 'ready' or status.state == 'idle' then
    return status.medianMs and ('Midspan %d ms'):format(status.medianMs) or 'Midspan'
  end
  return ({ busy = 'Midspan ...', starting = 'Midspan starting', off = 'Midspan off', error = 'Midspan error' })[status.state]
end

--- Return a report of the server as lines of text.
---@param report table the answer of the command midspan.status
---@return string[]
function M.readable(report)
  local function known(value)
    return value ~= vim.NIL and value or nil
  end
  local engine, median = known(report.engine), known(report.medianMs)
  local model = engine and ('%s on %s'):format(engine.model.name, engine.model.device) or report.model
  local lines = {
    ('state    %s'):format(report.message),
    ('model    %s'):format(model),
    ('shown    %d: %d accepted, %d of them in part; %d dismissed'):format(
      report.shown,
      report.accepted + report.partial,
      report.partial,
      report.dismissed
    ),
    ('asked    %d times of the engine; %d were typed along'):format(report.asked, report.reused),
  }
  if median then
    table.insert(lines, ('median   %g ms from request to answer'):format(median))
  end
  if known(report.memory) then
    table.insert(lines, (report.memory:gsub('^memory: ', 'memory   ')))
  end
  if engine then
    table.insert(lines, ('engine   process %d'):format(engine.pid))
  end
  if known(report.offer) then
    table.insert(lines, ('larger   %s; `:Midspan install` installs it'):format(report.offer.text))
  end
  return lines
end

return M
