if vim.g.loaded_midspan then
  return
end
vim.g.loaded_midspan = true

vim.api.nvim_create_user_command('Midspan', function(call)
  require('midspan.command').run(call.fargs)
end, {
  nargs = '+',
  desc = 'Midspan: status, toggle, restart or log',
  complete = function(_, line)
    return require('midspan.command').complete(line)
  end,
})
