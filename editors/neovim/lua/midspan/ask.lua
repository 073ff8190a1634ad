--- Asks the server for suggestions: soon after each key, and at once if the user wants it.
---
--- Neovim could do this too (|lsp-inline_completion|), but it waits 200 ms after each key.

local ghost = require('midspan.ghost')
local held_back = require('midspan.held_back')
local menu = require('midspan.menu')
local toggle = require('midspan.toggle')

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local KINDS = vim.lsp.protocol.InlineCompletionTriggerKind
--- Milliseconds from a key to its request: as many as an answer takes, but fewer than from one key to the next, because a
--- slow fill goes on while the user types along. A server costs something each time, and is asked when the user pauses.
local SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS, LONGEST_OF_SERVER_MS = 5, 50, 200

---@class midspan.Request
---@field moment string
---@field client vim.lsp.Client
---@field id? integer nil once it is answered

--- The last request of each buffer.
---@type table<integer, midspan.Request>
local last = {}

local timer = assert(vim.uv.new_timer())

---@param buf integer
---@return boolean
local function is_typed_in(buf)
  return buf == vim.api.nvim_get_current_buf() and vim.startswith(vim.api.nvim_get_mode().mode, 'i')
end

---@return midspan.MenuEntry?
local function selected_entry()
  local col = vim.api.nvim_win_get_cursor(0)[2]
  return menu.pending(vim.api.nvim_get_current_line():sub(1, col))
end

--- Return a text that names the cursor's position, the version of the buffer, and the selected entry of the menu. An
--- answer is valid only for these.
---@param buf integer
---@param entry? midspan.MenuEntry
---@return string
local function moment(buf, entry)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  return ('%d %d:%d %s'):format(tick, cursor[1], cursor[2], entry and entry.text or '')
end

---@param client vim.lsp.Client
---@param entry? midspan.MenuEntry
---@return lsp.InlineCompletionParams
local function params_of(client, entry)
  local at = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local context = { triggerKind = KINDS.Automatic } ---@type lsp.InlineCompletionContext
  if entry then
    local line = vim.api.nvim_get_current_line()
    local start = vim.str_utfindex(line, client.offset_encoding, entry.start, false)
    local range = { start = { line = at.position.line, character = start }, ['end'] = at.position }
    context.selectedCompletionInfo = { range = range, text = entry.text }
  end
  return { textDocument = at.textDocument, position = at.position, context = context }
end

---@param client vim.lsp.Client
---@param buf integer
---@param is_asked boolean
---@param after? fun() called once there is ghost text for it
local function ask(client, buf, is_asked, after)
  timer:stop()
  local entry = selected_entry()
  if entry and entry.text == '' then
    ghost.hide(buf)
    return
  end
  local params = params_of(client, entry)
  params.context.triggerKind = is_asked and KINDS.Invoked or KINDS.Automatic
  local request = { client = client, moment = moment(buf, entry) } ---@type midspan.Request
  local place = ghost.place(buf)
  last[buf] = request
  local function is_newest()
    return last[buf] == request and is_typed_in(buf)
  end
  local function is_current()
    return is_newest() and moment(buf, selected_entry()) == request.moment
  end
  local sent, id = client:request(METHOD, params, function(err, result)
    request.id = nil
    local items = not err and result and (result.items or result) or {}
    if not is_current() then
      -- The next request waits for a pause. What is typed along meanwhile need not.
      if is_newest() and not entry and not selected_entry() then
        ghost.show_late(client, items, place)
      end
      return
    end
    -- The server shows why it has nothing. Old ghost text must not stay after an error.
    ghost.show(client, items, is_asked)
    if is_asked or ghost.shown() then
      held_back.clear(buf)
    else
      held_back.ask(client, buf, is_current)
    end
    if after and ghost.shown() then
      after()
    end
  end, buf)
  request.id = sent and id or nil
end

--- Ask now, unless this was asked before. Where the user is not in insert mode, nothing is asked.
---@param buf integer
function M.now(buf)
  local client = is_typed_in(buf) and not toggle.is_off_in(buf) and require('midspan.client').of(buf)
  if client and not (last[buf] and last[buf].moment == moment(buf, selected_entry())) then
    ask(client, buf, false)
  end
end

--- Ask again, also if this was asked before: the server may answer something else now.
function M.again()
  local buf = vim.api.nvim_get_current_buf()
  last[buf] = nil
  M.now(buf)
end

---@param buf integer
local function soon(buf)
  local client = require('midspan.client').of(buf)
  local status = client and require('midspan.status').of(client.id) or {}
  local longest = status.isServer and LONGEST_OF_SERVER_MS or LONGEST_PAUSE_MS
  local pause = math.min(math.max(status.medianMs or 0, SHORTEST_PAUSE_MS), longest)
  timer:stop()
  timer:start(
    math.floor(pause),
    0,
    vim.schedule_wrap(function()
      M.now(buf)
    end)
  )
end

--- Ask because the user wants it. Returns false where Midspan does not run.
---@param after? fun() called once there is ghost text for it
---@return boolean
function M.by_hand(after)
  local buf = vim.api.nvim_get_current_buf()
  local client = require('midspan.client').of(buf)
  if not client or not is_typed_in(buf) then
    return false
  end
  if toggle.is_off_in(buf) then
    require('midspan.tell').info('suggestions are off in this buffer; `:Midspan toggle buffer` turns them on')
  else
    ask(client, buf, true, after)
  end
  return true
end

--- Ask at the cursor because the user wants it, also from normal mode: insert mode begins first.
function M.from_anywhere()
  local buf = vim.api.nvim_get_current_buf()
  if not require('midspan.client').of_or_tell(buf) or M.by_hand() then
    return
  end
  vim.api.nvim_create_autocmd('InsertEnter', {
    buffer = buf,
    once = true,
    callback = vim.schedule_wrap(function()
      M.by_hand()
    end),
  })
  -- Who has just left insert mode is on the character that was typed last.
  vim.cmd.startinsert({ bang = vim.fn.charcol('.') >= vim.fn.strchars(vim.api.nvim_get_current_line()) })
end

--- Show nothing more in a buffer until its text or the cursor changes.
---@param buf integer
function M.rest(buf)
  ghost.hide(buf)
  held_back.clear(buf)
  if is_typed_in(buf) then
    last[buf] = { client = assert(require('midspan.client').of(buf)), moment = moment(buf, selected_entry()) }
  end
end

---@param buf integer
local function stop(buf)
  timer:stop()
  ghost.hide(buf)
  held_back.clear(buf)
  if last[buf] and last[buf].id then
    last[buf].client:cancel_request(last[buf].id)
  end
  last[buf] = nil
end

--- Follow what the user does in a buffer.
---@param buf integer
function M.follow(buf)
  local group = vim.api.nvim_create_augroup('midspan.ask', { clear = false })
  vim.api.nvim_clear_autocmds({ group = group, buffer = buf })
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, {
      group = group,
      buffer = buf,
      callback = function()
        callback(buf)
      end,
    })
  end
  on({ 'InsertEnter', 'CursorMovedI', 'TextChangedI', 'TextChangedP' }, function()
    ghost.draw(buf)
    held_back.moved(buf)
    soon(buf)
  end)
  on({ 'InsertLeave', 'BufLeave', 'BufUnload' }, stop)
  local of_menu = vim.api.nvim_create_augroup('midspan.menu', { clear = true })
  menu.follow(of_menu, function(changed)
    if last[changed] then
      M.now(changed)
    end
  end)
  -- The user may have typed while the server started.
  if is_typed_in(buf) then
    soon(buf)
  end
end

return M
