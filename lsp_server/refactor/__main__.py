"""`python -m lsp_server.refactor`: what `midspan refactor` runs."""

from lsp_server.refactor.command import main

if __name__ == "__main__":  # worker processes import this module too
    main()
