--- Showing other candidates.

local ask = require('midspan.ask')
local ghost = require('midspan.ghost')

local M = {}

--- Show the candidate that is `count` further in the list. If there is only one, ask for more first: the one that is
--- shown stays the first of them. If there is none, ask. Returns false where Midspan does not run.
---@param count integer
---@return boolean
function M.step(count)
  local shown = ghost.shown()
  if not shown then
    return ask.by_hand()
  end
  if shown.count == 1 then
    return ask.by_hand(function()
      ghost.step(count)
    end)
  end
  ghost.step(count)
  return true
end

return M
