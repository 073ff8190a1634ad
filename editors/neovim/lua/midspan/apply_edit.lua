--- The server's request to change files. Neovim's own handler does it, after all files are found to be as they were.
---
--- Neovim looks only at the version of the first file, and stops in the middle if a later one cannot be changed.

local buf_of = require('midspan.client').buf_of
local tell = require('midspan.tell')

local M = {}

local APPLY = 'workspace/applyEdit'

---@type table<integer, integer> the buffers of the last edit, with their ticks after it
local last = {}

---@param document { uri: string, version?: integer }
---@return string? problem
local function problem_with(document)
  local buf = buf_of(document.uri)
  local name = vim.fn.fnamemodify(vim.uri_to_fname(document.uri), ':.')
  local is_open = vim.api.nvim_buf_is_loaded(buf)
  if not is_open and not pcall(vim.fn.bufload, buf) then
    return name .. ' cannot be opened'
  end
  if not vim.bo[buf].modifiable then
    return name .. " is not 'modifiable'"
  end
  if is_open and type(document.version) == 'number' and vim.lsp.util.buf_versions[buf] ~= document.version then
    return name .. ' has changed meanwhile'
  end
end

---@param document { uri: string }
local function begin_undo_step(document)
  local buf = buf_of(document.uri)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

---@param edit lsp.WorkspaceEdit
---@return { uri: string, version?: integer }[]
local function documents_of(edit)
  local documents = {}
  for _, change in ipairs(edit.documentChanges or {}) do
    table.insert(documents, change.textDocument)
  end
  for uri in pairs(edit.changes or {}) do
    table.insert(documents, { uri = uri })
  end
  return documents
end

--- Take away what Neovim would ask and print for each file: the user has seen and chosen these places.
---@param edit lsp.WorkspaceEdit
local function drop_annotations(edit)
  edit.changeAnnotations = nil
  for _, change in ipairs(edit.documentChanges or {}) do
    for _, text_edit in ipairs(change.edits or {}) do
      text_edit.annotationId = nil
    end
  end
end

--- Change the buffers without a name, which Neovim would not find, and take them out of the edit.
---@param edit lsp.WorkspaceEdit
---@param encoding string
local function apply_to_nameless(edit, encoding)
  edit.documentChanges = edit.documentChanges
    and vim.tbl_filter(function(change)
      local uri = vim.tbl_get(change, 'textDocument', 'uri')
      if not uri or not vim.startswith(uri, 'untitled:') then
        return true
      end
      vim.lsp.util.apply_text_edits(change.edits, buf_of(uri), encoding)
      return false
    end, edit.documentChanges)
end

--- Change all files, or none of them: then the answer says why. Each file gets one undo step.
---@param err? lsp.ResponseError
---@param params lsp.ApplyWorkspaceEditParams
---@param context lsp.HandlerContext
---@return lsp.ApplyWorkspaceEditResult
function M.handle(err, params, context)
  local documents = documents_of(params.edit)
  for _, document in ipairs(documents) do
    local problem = problem_with(document)
    if problem then
      return { applied = false, failureReason = problem }
    end
  end
  vim.iter(documents):each(begin_undo_step)
  drop_annotations(params.edit)
  apply_to_nameless(params.edit, assert(vim.lsp.get_client_by_id(context.client_id)).offset_encoding)
  -- Neovim would print the label, over the line that says what was changed.
  local result = vim.lsp.handlers[APPLY](err, { edit = params.edit }, context)
  last = {}
  for _, document in ipairs(documents) do
    local buf = vim.uri_to_bufnr(document.uri)
    last[buf] = vim.api.nvim_buf_get_changedtick(buf)
  end
  return result
end

---@param buf integer
---@return string
local function name_of(buf)
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ':t')
end

--- Return the buffers of the last edit that are still there and fit, by number.
---@param fits fun(buf: integer, tick: integer): boolean
---@return integer[]
local function buffers(fits)
  local found = {} ---@type integer[]
  for buf, tick in pairs(last) do
    if vim.api.nvim_buf_is_loaded(buf) and fits(buf, tick) then
      table.insert(found, buf)
    end
  end
  table.sort(found)
  return found
end

--- Return the files of the last edit that are not written yet.
---@return integer[]
function M.unwritten()
  return buffers(function(buf)
    return vim.bo[buf].modified
  end)
end

---@param count integer
---@return string
local function files(count)
  return count == 1 and '1 file' or ('%d files'):format(count)
end

--- Write the files of the last edit, and say which cannot be written.
function M.write()
  local bufs = M.unwritten()
  if #bufs == 0 then
    tell.warn('no file of a bulk edit is to be written')
    return
  end
  local written = 0
  for _, buf in ipairs(bufs) do
    local ok, problem = pcall(vim.api.nvim_buf_call, buf, function()
      vim.cmd('silent write')
    end)
    written = written + (ok and 1 or 0)
    if not ok then
      tell.error(('%s is not written: %s'):format(name_of(buf), tostring(problem):match('E%d+:.*') or problem))
    end
  end
  tell.info(files(written) .. ' written')
end

--- Take the last edit back in all its files, or in none if one has changed since.
function M.undo()
  local bufs = buffers(function()
    return true
  end)
  if #bufs == 0 then
    tell.warn('there is no bulk edit to take back')
    return
  end
  for _, buf in ipairs(bufs) do
    if vim.api.nvim_buf_get_changedtick(buf) ~= last[buf] then
      tell.warn(name_of(buf) .. ' has changed since; `u` in each file takes its edit back')
      return
    end
  end
  for _, buf in ipairs(bufs) do
    vim.api.nvim_buf_call(buf, function()
      vim.cmd('silent undo')
    end)
  end
  last = {}
  tell.info(('taken back in %s, not saved'):format(files(#bufs)))
end

return M
