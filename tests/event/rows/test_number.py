"""How the digits of a DECIMAL lie in bytes."""

import pytest

from ibbmaster.event.rows.number import decimal_size, digit_groups

# What the manual of MariaDB says of the storage of DECIMAL: four bytes for nine digits, and 1 to 4 for what is left
LEFT = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4}


@pytest.mark.parametrize("digits", range(1, 66))
def test_the_size_is_that_of_the_manual(digits):
    for scale in range(min(digits, 38) + 1):
        parts = (digits - scale, scale)
        assert decimal_size(digits, scale) == sum(part // 9 * 4 + LEFT[part % 9] for part in parts)


@pytest.mark.parametrize(
    ("digits", "scale", "groups"),
    [
        (1, 0, [1]),
        (9, 0, [9]),
        (10, 2, [8, 2]),
        (14, 4, [1, 9, 4]),
        (20, 20, [9, 9, 2]),
        (65, 30, [8, 9, 9, 9, 9, 9, 9, 3]),
    ],
)
def test_what_is_not_nine_digits_is_farthest_from_the_point(digits, scale, groups):
    assert digit_groups(digits, scale) == groups
