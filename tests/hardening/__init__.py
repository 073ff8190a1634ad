"""What attacks Midspan, and stays: each part has a module that does it, and a test that does a little of it in CI.

`make soak` does all parts for an hour (`MINUTES=5 make soak` is shorter), and prints the table of docs/reliability.md.

| part | does it | what it does |
| --- | --- | --- |
| editing | long_editing.py | a hypothesis machine edits while engines die (editing.py: what must hold) |
| kills | kills.py | kills, stops, fills the disk and removes folders at every await point of a client |
| fuzz | fuzz.py | frames, LSP messages, weights' headers and models' folders; corpus/ keeps what was found |
| strangers | strangers.py | another user tries the folder, the lock, the socket, the port and the token |
| memory | memory.py | 50,000 fills: what the two processes take |
| typists | typists_at_once.py | 10 and 50 editors that type at once |
| real editors | real_editors.py | the tests in Neovim and VS Code, 20 times in a row |
"""
