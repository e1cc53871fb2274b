import pytest

from ibbmaster.replication.wire.refusal import broken_off
from ibbmaster.work import BreakReason


@pytest.mark.parametrize(
    ("reason", "code"),
    {BreakReason.KILLED: 1317, BreakReason.LEFT: 1317, BreakReason.TIMED_OUT: 1969, BreakReason.STOPPED: 1053}.items(),
)
def test_each_reason_has_the_number_that_a_server_gives_it(reason, code):
    assert broken_off(reason).err.code == code
