--- The completion menu: Neovim's own, or that of blink.cmp or nvim-cmp. A suggestion continues its selected entry.

local M = {}

--- Keys that Neovim's menu has a meaning for.
local KEYS = { '<C-e>', '<C-n>', '<C-p>', '<C-y>', '<CR>', '<Down>', '<PageDown>', '<PageUp>', '<Up>' }
local SNIPPET = vim.lsp.protocol.InsertTextFormat.Snippet
--- What is drawn for an entry that is a snippet: nothing that we know of can continue it.
local UNKNOWN = ''
--- Whether nvim-cmp has our listeners: they stay until Neovim ends.
local follows_cmp = false

---@class midspan.MenuEntry
---@field start integer the column where its text begins, 0-based, in bytes
---@field text string "" if it is not known

--- Return whether Neovim's own menu is open.
---@return boolean
function M.is_open()
  return vim.fn.pumvisible() == 1
end

--- Return whether an entry of Neovim's own menu is selected: then the keys belong to the menu.
---@return boolean
function M.has_selection()
  return M.is_open() and vim.fn.complete_info({ 'selected' }).selected >= 0
end

--- Return whether Neovim's menu has a meaning for a key.
---@param key string
---@return boolean
function M.knows(key)
  return vim.iter(KEYS):any(function(each)
    return vim.keycode(each) == vim.keycode(key)
  end)
end

---@param item lsp.CompletionItem
---@return string
local function text_of(item)
  if item.insertTextFormat == SNIPPET then
    return UNKNOWN
  end
  return item.textEdit and item.textEdit.newText or item.insertText or item.label
end

--- Return the text of the selected entry, or nil if none is selected.
---@return string?
local function selected_text()
  if M.is_open() then
    local completed = vim.fn.complete_info({ 'completed' }).completed
    return completed and completed.word
  end
  local blink, cmp = package.loaded['blink.cmp'], package.loaded['cmp']
  if blink and blink.is_menu_visible and blink.is_menu_visible() then
    local item = blink.get_selected_item()
    return item and text_of(item)
  end
  if cmp and cmp.visible and cmp.visible() then
    local entry = cmp.get_selected_entry()
    return entry and text_of(entry:get_completion_item())
  end
end

--- Return the selected entry if its text is not in the buffer yet, else nil.
---@param before string the line before the cursor
---@return midspan.MenuEntry?
function M.pending(before)
  local found, text = pcall(selected_text)
  if not found or not text then
    return nil
  end
  local start = vim.fn.match(before, [[\k*$]])
  if text ~= UNKNOWN and vim.endswith(before, text) then
    return nil
  end
  return { start = start, text = text }
end

--- Call `changed` with a buffer whenever the menu opens or closes there, or another entry is selected.
---@param group integer
---@param changed fun(buf: integer)
function M.follow(group, changed)
  local function on(event, pattern)
    vim.api.nvim_create_autocmd(event, {
      group = group,
      pattern = pattern,
      callback = function()
        -- The menu has its new state only after the event.
        vim.schedule(function()
          changed(vim.api.nvim_get_current_buf())
        end)
      end,
    })
  end
  on({ 'CompleteChanged', 'CompleteDone' })
  on('User', { 'BlinkCmpMenuOpen', 'BlinkCmpMenuClose', 'BlinkCmpListSelect' })
  vim.api.nvim_create_autocmd('InsertEnter', {
    group = group,
    callback = function()
      local cmp = package.loaded['cmp']
      if cmp and cmp.event and not follows_cmp then
        follows_cmp = true
        for _, event in ipairs({ 'menu_opened', 'menu_closed' }) do
          cmp.event:on(event, function()
            changed(vim.api.nvim_get_current_buf())
          end)
        end
      end
    end,
  })
end

return M
