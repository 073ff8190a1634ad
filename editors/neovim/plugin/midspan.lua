if vim.g.loaded_midspan then
  return
end
vim.g.loaded_midspan = true

vim.api.nvim_create_user_command('Midspan', function(call)
  local lines = call.range > 0 and { first = call.line1, last = call.line2 } or nil
  require('midspan.command').run(call.fargs, lines)
end, {
  nargs = '+',
  range = true,
  desc = 'Midspan: suggestions, bulk edits and the next edit',
  complete = function(_, line)
    return require('midspan.command').complete(line)
  end,
})

-- `midspan setup` wrote what to start with. A setup() of the user's own, before this file or after it, goes over that.
if vim.fn.has('nvim-0.12') == 1 and require('midspan.config').installed() and not require('midspan.config').is_set_up() then
  require('midspan').setup()
end
