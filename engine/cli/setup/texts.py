"""What setup writes into configurations. The braces are filled in with quoted strings."""

import json

NEOVIM_INSTALLED = """\
-- Written by `midspan setup`: what Midspan starts with. Your own setup() in init.lua changes what it names.
return {{
  cmd = {{ {server} }},
  keymaps = {{ accept = '<Tab>', accept_word = '<M-Right>', dismiss = '<M-e>' }},
}}
"""
NEOVIM_LAZY = "lazy.nvim loads no packages; add this to its plugins: {{ dir = {target}, lazy = false }}"
HELIX_SERVER = """# Written by `midspan setup`, to the end of this file.
[language-server.midspan]
command = {server}
config = {{ completionItems = true }}
"""
HELIX_LANGUAGES = (
    "python",
    "typescript",
    "javascript",
    "go",
    "rust",
    "java",
    "c",
    "cpp",
    "c-sharp",
    "ruby",
    "php",
    "bash",
)
EMACS = """;;; midspan.el --- Written by `midspan setup`  -*- lexical-binding: t -*-
(with-eval-after-load 'lsp-mode
  (require 'lsp-inline-completion nil t)
  (lsp-register-client
   (make-lsp-client :new-connection (lsp-stdio-connection '({server}))
                    :activation-fn (lambda (&rest _) t)
                    :server-id 'midspan
                    :add-on? t))
  (global-set-key (kbd "C-c m") 'lsp-inline-completion-display))
;;; midspan.el ends here
"""


def helix_language(name: str, servers: list[str]) -> str:
    """Return the entry of languages.toml that gives a language its `servers` and midspan."""
    listed = ", ".join(quoted(server) for server in [*servers, "midspan"])
    return f"\n[[language]]\nname = {quoted(name)}\nlanguage-servers = [{listed}]\n"


def quoted(text: str) -> str:
    """Return a path or a name as a string of Lua, TOML and Emacs Lisp, which quote it as JSON does."""
    return json.dumps(text, ensure_ascii=False)
