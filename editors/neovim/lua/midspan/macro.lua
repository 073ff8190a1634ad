--- Macros: what was accepted while one was recorded is in it as text, not as the key that accepted it.

local M = {}

--- Follows the key in the recording, and does nothing. So the key is found there.
local MARK = '<Plug>(midspan-accepted)'
--- How Neovim itself records a paste.
local PASTE, PASTED = '\128PS', '\128PE'
local SOURCE = vim.api.nvim_create_namespace('midspan.macro')

---@type { keys: string, text: string }[]
local accepted = {}

--- The last keys that were typed, as they are in the recording.
local typed = ''

--- Note that a text is accepted with the key that was typed last.
---@param text string
function M.note(text)
  if vim.fn.reg_recording() ~= '' then
    table.insert(accepted, { keys = typed, text = text })
    vim.api.nvim_feedkeys(vim.keycode(MARK), 'mt', false)
  end
end

--- Return what was recorded with the accepted texts in place of the keys.
---@param recorded string
---@return string
local function with_texts(recorded)
  local done, rest = '', recorded
  for _, each in ipairs(accepted) do
    local keys = each.keys .. vim.keycode(MARK)
    local first, last = rest:find(keys, 1, true)
    if first then
      done, rest = done .. rest:sub(1, first - 1) .. PASTE .. each.text .. PASTED, rest:sub(last + 1)
    end
  end
  return done .. rest
end

local function recording_ends()
  vim.on_key(nil, SOURCE)
  local register, recorded = vim.v.event.regname, vim.v.event.regcontents
  if #accepted == 0 then
    return
  end
  local keys = with_texts(recorded)
  accepted = {}
  local name = register:lower()
  -- Neovim writes the register after this event, and before the next key. One that is continued has more in front.
  local function write()
    vim.on_key(nil, SOURCE)
    local now = vim.fn.getreg(name)
    if vim.endswith(now, recorded) then
      vim.fn.setreg(name, now:sub(1, #now - #recorded) .. keys, 'c')
    end
  end
  vim.on_key(write, SOURCE)
  vim.schedule(write)
end

--- Follow the recording of macros.
function M.follow()
  local group = vim.api.nvim_create_augroup('midspan.macro', { clear = true })
  vim.keymap.set('i', MARK, function() end, { desc = 'Midspan: a text was accepted' })
  vim.api.nvim_create_autocmd('RecordingEnter', {
    group = group,
    callback = function()
      accepted = {}
      vim.on_key(function(_, keys)
        typed = keys ~= '' and keys ~= vim.keycode(MARK) and keys or typed
      end, SOURCE)
    end,
  })
  vim.api.nvim_create_autocmd('RecordingLeave', { group = group, callback = recording_ends })
end

return M
