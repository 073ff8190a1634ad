--- The switches. The server has those for everything and for a filetype; the switch for a buffer is here.

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

---@param language? string
---@param where string
local function toggle_in_server(language, where)
  local client_of = require('midspan.client')
  local client = client_of.any()
  if not client then
    require('midspan.tell').warn('the language server does not run here, so there is nothing to turn off')
    return
  end
  -- Each project root has its own server. All of them get the same state.
  local others = vim.lsp.get_clients({ name = client_of.NAME })
  client_of.execute(client, 'midspan.toggle', language and { language } or nil, function(result)
    for _, other in ipairs(others) do
      if other.id ~= client.id then
        client_of.execute(other, 'midspan.toggle', language and { language } or nil)
      end
    end
    tell(result.enabled, where)
  end)
end

--- Turn suggestions off, or on again.
---@param scope 'all'|'filetype'|'buffer'
function M.toggle(scope)
  require('midspan.ghost').hide(vim.api.nvim_get_current_buf())
  require('midspan.next_edit_offer').hide()
  if scope == 'buffer' then
    local off = M.is_off_in(0)
    vim.b.midspan = off
    tell(off, 'in this buffer')
  elseif scope == 'filetype' then
    toggle_in_server(vim.bo.filetype, ('in %s files'):format(vim.bo.filetype))
  else
    toggle_in_server(nil, 'everywhere')
  end
end

return M
