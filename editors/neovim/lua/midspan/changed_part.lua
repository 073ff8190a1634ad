--- The part of a text that an edit changes.

local M = {}

--- Return the length in bytes of the longest start that both texts share, at most `most`. No character is cut.
---@param one string
---@param other string
---@param most integer
---@return integer
local function common_start(one, other, most)
  local length = 0
  while length < most and one:byte(length + 1) == other:byte(length + 1) do
    length = length + 1
  end
  while length > 0 and length < #one and vim.str_utf_start(one, length + 1) ~= 0 do
    length = length - 1
  end
  while length > 0 and length < #other and vim.str_utf_start(other, length + 1) ~= 0 do
    length = length - 1
  end
  return length
end

--- Return how many bytes at the start and at the end of both texts are the same. Where text is replaced, words are whole.
---@param before string
---@param after string
---@return integer start
---@return integer tail
function M.same_around(before, after)
  local shorter = math.min(#before, #after)
  local start = common_start(before, after, shorter)
  local tail = 0
  while tail < shorter - start and before:byte(#before - tail) == after:byte(#after - tail) do
    tail = tail + 1
  end
  while tail > 0 and vim.str_utf_start(before, #before - tail + 1) ~= 0 do
    tail = tail - 1
  end
  if start + tail < shorter then
    while before:sub(start, start):match('[%w_]') do
      start = start - 1
    end
    while before:sub(#before - tail + 1, #before - tail + 1):match('[%w_]') do
      tail = tail - 1
    end
  end
  return start, tail
end

return M
