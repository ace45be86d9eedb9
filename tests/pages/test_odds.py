"""Whether two shares differ by more than chance."""

import pytest

from runs.pages.odds import differ


@pytest.mark.parametrize(
    ("one", "of", "other", "of_other", "differs"),
    [
        (3, 4, 1, 4, False),  # Fisher's tea: p = 0.486
        (1, 12, 11, 12, True),  # p = 0.0001
        (0, 100, 6, 100, True),  # p = 0.029
        (0, 100, 5, 100, False),  # p = 0.059
        (0, 0, 3, 10, False),
        (0, 50, 0, 50, False),
        (9_000, 10_000, 9_200, 10_000, True),
    ],
)
def test_a_difference_is_told_where_chance_would_rarely_make_it(
    one: int, of: int, other: int, of_other: int, differs: bool
) -> None:
    assert differ(one, of, other, of_other) is differs
    assert differ(other, of_other, one, of) is differs
