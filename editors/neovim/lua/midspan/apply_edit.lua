--- The server's request to change files. Neovim's own handler does it, after all files are found to be as they were.
---
--- Neovim looks only at the version of the first file, and stops in the middle if a later one cannot be changed.

local M = {}

local APPLY = 'workspace/applyEdit'

---@param change lsp.TextDocumentEdit
---@return string? problem
local function problem_with(change)
  local uri, version = change.textDocument.uri, change.textDocument.version
  local buf = vim.uri_to_bufnr(uri)
  local name = vim.fn.fnamemodify(vim.uri_to_fname(uri), ':.')
  local known = vim.api.nvim_buf_is_loaded(buf)
  if not known and not pcall(vim.fn.bufload, buf) then
    return name .. ' cannot be opened'
  end
  if not vim.bo[buf].modifiable then
    return name .. " is not 'modifiable'"
  end
  if known and type(version) == 'number' and vim.lsp.util.buf_versions[buf] ~= version then
    return name .. ' has changed meanwhile'
  end
end

---@param change lsp.TextDocumentEdit
local function begin_undo_step(change)
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
end

--- Change all files, or none of them: then the answer says why. Each file gets one undo step.
---@param err? lsp.ResponseError
---@param params lsp.ApplyWorkspaceEditParams
---@param context lsp.HandlerContext
---@return lsp.ApplyWorkspaceEditResult
function M.handle(err, params, context)
  local changes = vim.tbl_filter(function(change)
    return change.textDocument ~= nil
  end, params.edit.documentChanges or {})
  for _, change in ipairs(changes) do
    local problem = problem_with(change)
    if problem then
      return { applied = false, failureReason = problem }
    end
  end
  vim.iter(changes):each(begin_undo_step)
  -- Neovim would print the label, over the line that says what was changed.
  return vim.lsp.handlers[APPLY](err, { edit = params.edit }, context)
end

return M
