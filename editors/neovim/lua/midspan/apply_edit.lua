--- The server's request to change files. Neovim's own handler does it, after all files are found to be as they were.
---
--- Neovim looks only at the version of the first file, and stops in the middle if a later one cannot be changed.

local M = {}

local APPLY = 'workspace/applyEdit'

---@param document { uri: string, version?: integer }
---@return string? problem
local function problem_with(document)
  local buf = vim.uri_to_bufnr(document.uri)
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
  local buf = vim.uri_to_bufnr(document.uri)
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
  -- Neovim would print the label, over the line that says what was changed.
  return vim.lsp.handlers[APPLY](err, { edit = params.edit }, context)
end

return M
