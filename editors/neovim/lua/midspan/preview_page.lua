--- The text of the preview: what a bulk edit changes, place by place, with a tick for each place that is wanted.

local changed_part = require('midspan.changed_part')

local M = {}

local KEYS = '<Space> tick, a all, n none, <CR> go, <C-y> or :w apply, r search, q close'
local KEYS_FOR_ONE = '<Space> choose one of these, <CR> go there, <C-y> or :w apply, r ask again, q close'

---@class midspan.PreviewMark
---@field group string
---@field first? integer in bytes; the whole line if nil
---@field last? integer

---@class midspan.PreviewTarget
---@field places midspan.BulkPlace[] what a key on the line is about: a place, or all of a file
---@field uri string
---@field line integer counted from 0

---@class midspan.PreviewPage
---@field lines string[]
---@field marks table<integer, midspan.PreviewMark[]> by row, counted from 0
---@field targets table<integer, midspan.PreviewTarget> by row, counted from 0
---@field folded { first: integer, last: integer }[] rows, counted from 1
---@field first_place integer the row of the first place, counted from 0
local Page = {}
Page.__index = Page

---@param text string
---@return string[]
local function lines_of(text)
  text = text:gsub('\r', '')
  -- vim.split is slow, and there may be thousands of places.
  return text:find('\n', 1, true) and vim.split(text, '\n', { plain = true }) or { text }
end

---@param line string
---@param group? string
---@param target? midspan.PreviewTarget
---@return integer row
function Page:add(line, group, target)
  table.insert(self.lines, line)
  local row = #self.lines - 1
  self.marks[row] = { group and { group = group } }
  self.targets[row] = target
  return row
end

---@param row integer
---@param group string
---@param first integer
---@param last integer
function Page:mark(row, group, first, last)
  if last > first then
    table.insert(self.marks[row], { group = group, first = first, last = last })
  end
end

---@param count integer
---@param what string
---@return string
local function counted(count, what)
  return ('%d %s%s'):format(count, what, count == 1 and '' or 's')
end

---@param places midspan.BulkPlace[]
---@param ticked table<integer, boolean> by the places' ids
---@return midspan.BulkPlace[]
local function ticked_of(places, ticked)
  return vim.tbl_filter(function(place)
    return ticked[place.id]
  end, places)
end

---@param edit midspan.BulkEdit
---@param notice? string
function Page:add_header(edit, notice)
  self:add(edit.title, 'Title')
  if edit.rule ~= '' then
    for _, line in ipairs(lines_of(edit.rule)) do
      self:add('  ' .. line, 'String')
    end
  end
  self:add(edit.exclusive and KEYS_FOR_ONE or KEYS, 'Comment')
  for _, line in ipairs(edit.reached) do
    self:add(line, 'WarningMsg')
  end
  if notice then
    self:add(notice, 'ErrorMsg')
  end
end

--- Add the lines before and after the edit. In a line that stays one line, the changed part is emphasized.
---@param place midspan.BulkPlace
---@param target midspan.PreviewTarget
function Page:add_difference(place, target)
  local before = place.before ~= '' and lines_of(place.before) or {}
  local after = place.after ~= '' and lines_of(place.after) or {}
  local start, tail
  if #before == 1 and #after == 1 then
    start, tail = changed_part.same_around(before[1], after[1])
  end
  for _, side in ipairs({ { '-', before, 'DiffDelete' }, { '+', after, 'DiffAdd' } }) do
    local prefix = '  ' .. side[1] .. ' '
    for _, line in ipairs(side[2]) do
      local row = self:add(prefix .. line, side[3], target)
      if start then
        self:mark(row, 'DiffText', #prefix + start, #prefix + #line - tail)
      end
    end
  end
end

---@param place midspan.BulkPlace
---@param ticked boolean
---@param exclusive boolean
function Page:add_place(place, ticked, exclusive)
  local box = (exclusive and '(%s)' or '[%s]'):format(ticked and 'x' or ' ')
  local where = ('%s:%d'):format(place.path, place.range.start.line + 1)
  local reason = place.reason
  if place.doubtful and not place.wide then
    reason = reason ~= '' and ('doubtful: ' .. reason) or 'doubtful'
  end
  local target = { places = { place }, uri = place.uri, line = place.range.start.line }
  local row = self:add(vim.trim(('%s %s  %s'):format(box, where, (reason:gsub('\n', ' ')))), nil, target)
  self:mark(row, 'Special', 0, #box)
  self:mark(row, 'Directory', #box + 1, #box + 1 + #where)
  self:add_difference(place, target)
end

---@param places midspan.BulkPlace[] of one file
---@param ticked table<integer, boolean>
---@param exclusive boolean
function Page:add_heading(places, ticked, exclusive)
  local wanted = #ticked_of(places, ticked)
  local count = exclusive and counted(#places, 'answer') or ('%d of %s'):format(wanted, counted(#places, 'place'))
  self:add('')
  self:add(('%s: %s'):format(places[1].path, count), 'Title', { places = places, uri = places[1].uri, line = places[1].range.start.line })
end

--- Add what follows the places of a file, such as imports. It cannot be chosen.
---@param following midspan.BulkPlace[]
---@param uri string
function Page:add_following(following, uri)
  for _, place in ipairs(following) do
    if place.uri == uri then
      local line = place.range.start.line
      local target = { places = {}, uri = uri, line = line }
      self:add(('    %s:%d  follows'):format(place.path, line + 1), 'Comment', target)
      self:add_difference(place, target)
    end
  end
end

--- Add the places that cannot be chosen.
---@param left_out midspan.BulkOmission[]
function Page:add_left_out(left_out)
  if #left_out == 0 then
    return
  end
  self:add('')
  local first = self:add('left out: ' .. counted(#left_out, 'place'), 'Title') + 1
  for _, each in ipairs(left_out) do
    local where = ('%s:%d'):format(each.path, each.line + 1)
    local target = { places = {}, uri = each.uri, line = each.line }
    local row = self:add(('    %s  %s'):format(where, (each.reason:gsub('\n', ' '))), nil, target)
    self:mark(row, 'Directory', 4, 4 + #where)
  end
  table.insert(self.folded, { first = first, last = #self.lines })
end

--- Add the places that only the widest form of the edit fits, in a fold.
---@param wide midspan.BulkPlace[]
---@param ticked table<integer, boolean>
function Page:add_wide(wide, ticked)
  if #wide == 0 then
    return
  end
  local wanted = #ticked_of(wide, ticked)
  local target = { places = wide, uri = wide[1].uri, line = wide[1].range.start.line }
  self:add('')
  local heading = ('wide, w takes them all: %d of %s'):format(wanted, counted(#wide, 'place'))
  local first = self:add(heading, 'Title', target) + 1
  for _, place in ipairs(wide) do
    self:add_place(place, ticked[place.id], false)
  end
  table.insert(self.folded, { first = first, last = #self.lines })
end

--- Return the places of each file, in the order of the edit.
---@param places midspan.BulkPlace[]
---@return midspan.BulkPlace[][]
local function by_file(places)
  local files = {} ---@type midspan.BulkPlace[][]
  for _, place in ipairs(places) do
    local last = files[#files]
    if not last or last[1].uri ~= place.uri then
      last = {}
      table.insert(files, last)
    end
    table.insert(last, place)
  end
  return files
end

--- Return the places that fit the rule, and those that only its widest form fits.
---@param edit midspan.BulkEdit
---@return midspan.BulkPlace[] narrow
---@return midspan.BulkPlace[] wide
function M.groups(edit)
  local groups = { [false] = {}, [true] = {} } ---@type table<boolean, midspan.BulkPlace[]>
  for _, place in ipairs(edit.places) do
    table.insert(groups[place.wide == true], place)
  end
  return groups[false], groups[true]
end

--- Return the page for an edit. Which places are ticked changes no line's position.
---@param edit midspan.BulkEdit
---@param ticked table<integer, boolean> by the places' ids
---@param notice? string a line about what went wrong
---@return midspan.PreviewPage
function M.page(edit, ticked, notice)
  local page = setmetatable({ lines = {}, marks = {}, targets = {}, folded = {}, first_place = 0 }, Page)
  page:add_header(edit, notice)
  local narrow, wide = M.groups(edit)
  for number, places in ipairs(by_file(narrow)) do
    page:add_heading(places, ticked, edit.exclusive)
    page.first_place = number == 1 and #page.lines or page.first_place
    for _, place in ipairs(places) do
      page:add_place(place, ticked[place.id], edit.exclusive)
    end
    page:add_following(edit.following, places[1].uri)
  end
  page:add_wide(wide, ticked)
  page:add_left_out(edit.leftOut)
  return page
end

return M
