--- The switches. The server has those for everything and for a language, and the snooze; that for a buffer is here.

local M = {}

---@param buf integer
---@return boolean
function M.is_off_in(buf)
  return vim.b[buf].midspan == false
end

---@param on boolean
---@param where string
local function tell(on, where)
  require('midspan.tell').info(('suggestions are %s %s'):format(on and 'on' or 'off', where))
end

--- Return a client of ours. If there is none, tell the user, and return nil.
---@return vim.lsp.Client?
local function client_or_tell()
  local client = require('midspan.client').any()
  if not client then
    require('midspan.tell').warn('the language server does not run here, so there is nothing to turn off')
  end
  return client
end

--- Send a command to the servers of all project roots, and call `on_result` with the first one's result.
---@param name string
---@param arguments any[]?
---@param on_result fun(result: any)
local function execute_everywhere(name, arguments, on_result)
  local client_of = require('midspan.client')
  local client = client_or_tell()
  if not client then
    return
  end
  client_of.execute(client, name, arguments, function(result)
    for _, other in ipairs(vim.lsp.get_clients({ name = client_of.NAME })) do
      if other.id ~= client.id then
        client_of.execute(other, name, arguments)
      end
    end
    on_result(result)
    require('midspan.ask').again()
  end)
end

local function hide()
  require('midspan.ghost').hide(vim.api.nvim_get_current_buf())
  require('midspan.next_edit_offer').hide()
end

--- Turn suggestions off, or on again.
---@param scope 'all'|'filetype'|'buffer'|string a language
function M.toggle(scope)
  hide()
  if scope == 'buffer' then
    local off = M.is_off_in(0)
    vim.b.midspan = off
    tell(off, 'in this buffer')
    require('midspan.ask').again()
  elseif scope == 'all' then
    execute_everywhere('midspan.toggle', nil, function(result)
      tell(result.enabled, 'everywhere')
    end)
  else
    local language = scope == 'filetype' and vim.bo.filetype or scope
    execute_everywhere('midspan.toggle', { language }, function(result)
      tell(result.enabled, ('in %s files'):format(language))
    end)
  end
end

--- Show nothing unasked for some minutes; 0 ends that.
---@param minutes number
function M.snooze(minutes)
  if minutes > 0 then
    hide()
  end
  execute_everywhere('midspan.snooze', { minutes }, function(result)
    local till = result['until']
    require('midspan.tell').info(
      type(till) == 'number' and ('snoozed until %s; `:Midspan snooze 0` ends it'):format(os.date('%H:%M', till))
        or 'the snooze is over'
    )
  end)
end

--- Return whether suggestions come unasked.
---@param client vim.lsp.Client
---@return boolean
function M.is_automatic(client)
  return vim.tbl_get(client.settings or {}, 'midspan', 'automatic') ~= false
end

--- Have suggestions come unasked, or only when the user asks, until Neovim ends.
---@param state? 'on'|'off' default: the other one
function M.automatic(state)
  local client = client_or_tell()
  if not client then
    return
  end
  local on = state == 'on' or (state == nil and not M.is_automatic(client))
  hide()
  require('midspan.client').use_settings({ automatic = on })
  require('midspan.tell').info(on and 'suggestions come unasked' or 'suggestions come only when you ask for them')
  if on then
    require('midspan.ask').again()
  else
    require('midspan.ask').rest(vim.api.nvim_get_current_buf()) -- An answer that is under way is shown no more.
  end
  vim.cmd.redrawstatus()
end

return M
