--- Messages to the user. Each is one line and begins with our name.

local M = {}

---@param line string
---@param level integer
local function tell(line, level)
  vim.notify('Midspan: ' .. line:gsub('^Midspan: ', ''), level)
end

---@param line string
function M.info(line)
  tell(line, vim.log.levels.INFO)
end

---@param line string
function M.warn(line)
  tell(line, vim.log.levels.WARN)
end

---@param line string
function M.error(line)
  tell(line, vim.log.levels.ERROR)
end

return M
