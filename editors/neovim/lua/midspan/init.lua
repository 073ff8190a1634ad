--- Midspan: ghost text at the cursor, filled in by a model on this machine.

local M = {}

--- Start Midspan in this buffer and each later one that is a file. A later call changes what it names.
---@param options? midspan.Options see |midspan-setup|
function M.setup(options)
  local tell = require('midspan.tell')
  if vim.fn.has('nvim-0.12') == 0 then
    tell.error('this needs Neovim 0.12 or newer, the first with inline completion; please update')
    return
  end
  local chosen, problem = require('midspan.config').read(options)
  if problem then
    tell.warn(problem)
  end
  require('midspan.keymaps').give_back()
  require('midspan.keymaps').set(require('midspan.config').insert_keys())
  require('midspan.keymaps').set_visual(require('midspan.config').visual_keys())
  require('midspan.next_edit_requests').switch(chosen.next_edit)
  vim.lsp.config('midspan', require('midspan.config').for_client(chosen))
  local missing = require('midspan.client').why_missing()
  if missing then
    tell.error(missing)
    return
  end
  require('midspan.client').use_settings(chosen.settings)
  vim.lsp.enable('midspan')
end

--- Insert the suggestion that is shown, or its next line if the option tab says so. If none is, go to the next edit, or
--- make it if the cursor is there. Returns false if there is neither.
---@return boolean
function M.accept()
  local accept = require('midspan.accept')
  local take = require('midspan.config').tab_is('by line') and accept.line or accept.all
  return take() or M.next_edit()
end

--- Go to the next edit, or make it if the cursor is there. Returns false if none is shown.
---@return boolean
function M.next_edit()
  return vim.fn.pumvisible() == 0 and require('midspan.next_edit').forward()
end

--- Hide the next edit; these places are not offered again. Returns false if none is shown.
---@return boolean
function M.dismiss_next_edit()
  return require('midspan.next_edit').dismiss()
end

--- Insert the next word of the suggestion; the rest is still shown. Returns false if no suggestion is shown.
---@return boolean
function M.accept_word()
  return require('midspan.accept').word()
end

--- Insert the suggestion up to the end of its line; the rest is still shown. Returns false if no suggestion is shown.
---@return boolean
function M.accept_line()
  return require('midspan.accept').line()
end

--- Hide the suggestion. It is not offered here again until the text changes. Returns false if none is shown.
---@return boolean
function M.dismiss()
  return require('midspan.accept').dismiss()
end

--- Show the next candidate. If there is only one, ask for more; if there is none, ask.
---@return boolean
function M.next()
  return require('midspan.choose').step(1)
end

--- Show the previous candidate. If there is only one, ask for more; if there is none, ask.
---@return boolean
function M.previous()
  return require('midspan.choose').step(-1)
end

--- Ask for suggestions at the cursor now; there may be several.
---@return boolean
function M.trigger()
  return require('midspan.ask').by_hand()
end

--- Turn Midspan off, or on again: everywhere, for this buffer's filetype, or for this buffer.
---@param scope? 'all'|'filetype'|'buffer' default: 'all'
function M.toggle(scope)
  require('midspan.toggle').toggle(scope or 'all')
end

--- Show where the last suggestion in this buffer came from, or why there was none.
---@return boolean
function M.why()
  require('midspan.why').ask()
  return true
end

--- Return a short text for the status line: "Midspan 24 ms", "Midspan off", or "" where Midspan does not run.
---@return string
function M.statusline()
  return require('midspan.status').line()
end

return M
