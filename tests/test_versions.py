import pytest

from ibbmaster.versions import Difference, version_number

NUMBERS = {
    "12.3.2": 120302,
    "10.11.19-MariaDB-0+deb12u1-log": 101119,
    "11.8": 110800,
    "13.1.0-MariaDB": 130100,
    "10.11.190": 101100,
    **dict.fromkeys(("", "MariaDB 11.8.6", "11", "11.800.6", "１１.8.6"), 0),
}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items(), ids=list(NUMBERS))
def test_a_version_has_the_number_that_conditional_comments_have(text, number):
    assert version_number(text) == number


@pytest.mark.parametrize("difference", Difference)
def test_a_difference_holds_from_its_first_version_up_to_its_last(difference):
    assert difference.holds(difference.since)
    assert difference.holds(difference.until - 1)
    assert not difference.holds(difference.since - 1)
    assert not difference.holds(difference.until)
    assert not difference.holds(0)
