"""The exit statuses of the engine process, and the mark of its error line. The launcher reads both."""

ERROR = 1
INTERNAL = 70
# Another engine of the same user and model holds the lock. This is not an error: clients connect to that engine.
ALREADY_RUNNING = 75
# The line on stderr that says what is wrong begins with this.
ERROR_MARK = "midspan engine: "
