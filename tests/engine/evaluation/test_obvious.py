"""Which names of a task are obvious, and when they count as shown."""

from benchmarks.quality.obvious import ObviousName, obvious_names
from benchmarks.quality.typing_tasks import Screen, TypingTask, tally, type_place

_ABOVE = "response = get()\nrespond = 1\nseconds = total_time\n"


def test_a_name_is_obvious_if_the_code_has_it_and_no_other_with_its_first_three_characters() -> None:
    names = obvious_names("x = seconds + response + unknown + total_time", _ABOVE)
    assert names == [ObviousName(4, "seconds"), ObviousName(35, "total_time")]


def test_a_short_name_is_none() -> None:
    assert obvious_names("names", "names") == []


def test_it_is_shown_as_a_whole_and_by_its_third_character() -> None:
    name = ObviousName(4, "seconds")
    shown = [(4, "seconds + 1"), (7, "onds")]
    not_shown = [(3, " seconds"), (8, "nds"), (7, "ond"), (7, "onds_ago")]
    assert [name.is_shown(*each) for each in shown] == [True, True]
    assert [name.is_shown(*each) for each in not_shown] == [False] * 4


async def _typed(screens: dict[int, str]) -> tuple[int, float]:
    async def suggest(typed: int) -> Screen:
        return Screen(screens.get(typed, ""))

    task = TypingTask("a.py", "python", _ABOVE, "a = seconds\nb = total_time", "\n")
    typing = tally([await type_place(task, suggest)])
    return typing.names, typing.named


async def test_typing_counts_the_names_that_are_shown_in_time() -> None:
    assert await _typed({}) == (2, 0.0)
    assert await _typed({7: "onds", 20: "l_time"}) == (2, 0.5)
    assert await _typed({2: "= seconds\nb = total_time"}) == (2, 1.0)
