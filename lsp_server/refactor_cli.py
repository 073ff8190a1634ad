"""`python -m lsp_server.refactor_cli`: what `midspan refactor` runs."""

from lsp_server.refactor.command import app
from lsp_server.slots.command import annotate, docstrings, stubs

for name, command in {"stubs": stubs, "annotate": annotate, "docstrings": docstrings}.items():
    app.command(name)(command)

if __name__ == "__main__":  # worker processes import this module too
    app(prog_name="midspan refactor")
