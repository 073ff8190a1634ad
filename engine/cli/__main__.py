"""`python -m engine.cli`, for where the `midspan` script is not on the path."""

from engine.cli import main

main()
