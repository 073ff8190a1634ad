"""What `midspan fill --watch` shows while a hole is filled."""

import pytest

from engine.cli.fill import APART, MASK, canvas_text


@pytest.mark.parametrize(
    ("canvas", "shown"),
    [
        ([], ""),
        (["../", "utils"], "../utils"),
        (["../", None, "/", None], f"../{MASK}{APART}{MASK}"),
        ([None, "js", "js"], f"{MASK}{APART}{APART}"),
    ],
)
def test_text_after_a_mask_is_not_shown_before_the_mask_is_filled(canvas: list[str | None], shown: str) -> None:
    assert canvas_text(canvas).plain == shown
