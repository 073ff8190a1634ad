"""Edit similarity: how much of a fill a user would not have to change."""


def edit_distance(first: str, second: str) -> int:
    """Return the number of characters to insert, delete or replace (Levenshtein), in len(first) * len(second) steps."""
    if len(first) < len(second):
        first, second = second, first
    above = list(range(len(second) + 1))
    for row, character in enumerate(first, 1):
        here = [row]
        for column, other in enumerate(second, 1):
            here.append(min(above[column] + 1, here[-1] + 1, above[column - 1] + (character != other)))
        above = here
    return above[-1]


def edit_similarity(first: str, second: str) -> float:
    """Return 1 for equal texts, 0 for texts of which nothing can stay: 1 - distance / length of the longer one."""
    longer = max(len(first), len(second))
    return 1 - edit_distance(first, second) / longer if longer else 1.0
