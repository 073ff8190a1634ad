"""The length of drafts: it grows while they are right, and wrong drafts become rare."""

from engine.models.left_to_right.drafting import LONGEST, DraftLength


def lengths(passes: int, right: int) -> list[int]:
    """Return the lengths of the drafts of successive passes if at most `right` tokens of each are right."""
    length, asked = DraftLength(), []
    for _ in range(passes):
        asked.append(length.next())
        if asked[-1]:
            length.learn(min(right, asked[-1]))
    return asked


def test_a_draft_that_is_right_is_followed_by_a_longer_one() -> None:
    asked = lengths(8, LONGEST)
    assert asked == sorted(asked)
    assert asked[-1] == LONGEST


def test_drafts_settle_at_twice_the_right_tokens_plus_one() -> None:
    assert lengths(40, 3)[-1] == 7


def test_drafts_that_are_always_wrong_become_rare() -> None:
    asked = lengths(1000, 0)
    assert sum(map(bool, asked[500:])) <= 8
    assert sum(asked[500:]) < 16


def test_a_drafter_that_is_right_again_is_noticed() -> None:
    length = DraftLength()
    for _ in range(1000):
        if length.next():
            length.learn(0)
    asked = []
    for _ in range(100):
        if tokens := length.next():
            asked.append(tokens)
            length.learn(tokens)
    assert len(asked) > 30
    assert asked[-1] == LONGEST
