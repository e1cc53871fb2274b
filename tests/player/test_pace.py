"""When a group is due at each pace."""

import math

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.player.pace import Pace


@pytest.mark.parametrize(
    ("text", "factor"),
    [("original", 1.0), ("x10", 10.0), ("×2.5", 2.5), ("X0.5", 0.5), ("4x", 4.0), ("max", math.inf), ("step", 0.0)],
)
def test_a_pace_is_a_word_or_a_factor(text, factor):
    assert Pace.parse(text).factor == factor


@pytest.mark.parametrize("text", ["", "10", "x0", "x", "x-1", "fast", "xinf", "x1e9"])
def test_what_is_no_pace_is_refused(text):
    with pytest.raises(ConfigurationError, match="expected original, max, step, or a factor as x10"):
        Pace.parse(text)


def test_a_group_is_due_as_long_after_the_first_as_it_was_logged():
    assert Pace(factor=1).due(100.0, 1000.0, 1060.0) == 160.0
    assert Pace(factor=10).due(100.0, 1000.0, 1060.0) == 106.0
    assert Pace(factor=math.inf).due(100.0, 1000.0, 1060.0) == 100.0
    assert Pace(factor=1).due(100.0, 1000.0, 900.0) == 100.0, "before the first one: at once"
    assert Pace(factor=0).due(100.0, 1000.0, 1000.0) == math.inf
