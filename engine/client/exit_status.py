"""How the engine process tells the one that started it why it ended."""

ERROR = 1
INTERNAL = 70
# Another engine of the same user and model holds the lock: not an error, its clients go to that one.
ALREADY_RUNNING = 75
# Begins the one line on stderr that says what was wrong.
ERROR_MARK = "midspan engine: "
