"""`python -m engine.cli`: the command line for when the `midspan` script is not on the path."""

from engine.cli import main

main()
