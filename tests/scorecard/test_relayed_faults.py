import pytest

from ibbmaster.commands.recorder.relay import Relay
from ibbmaster.primary.server.registry import Registry
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.fault_stage import Faults
from ibbmaster.testkit.witness import Witness
from ibbmaster_scorecard.relayed_faults import FaultedConnection
from tests.commands.recorder.test_recording import FAULTS, heard, set_started, wait_until, write
from tests.recorded import relaying

MORE = {
    "an event with another checksum": ("checksum at rows; gtid=0-3-5; be=wrong",),
    "a group that is left out": ("drop at gtid; gtid=0-3-5",),
    "two groups that are swapped": ("swap at gtid; gtid=0-3-5",),
    "an event nobody expects": ("insert before commit; gtid=0-3-5; event=rotate",),
    "another answer": ("answer before statement; sql=mariadb_slave_capability; value=7",),
    "garbage": ("garbage before table map; gtid=0-3-5; count=40", "cut after table map; gtid=0-3-5"),
    "a stall": ("stall before gtid; gtid=0-3-5; seconds=0.1",),
}


def new_primary():
    primary = FixturePrimary(profile="classic-11.8", server_id=3)
    write(primary)
    primary.start()
    set_started(primary)
    return primary


def hear(port):
    return [heard(port, position=start) for start in ("", "", "", "0-3-4")]


@pytest.mark.parametrize("lines", [*FAULTS.values(), *MORE.values()], ids=[*FAULTS, *MORE])
def test_a_fault_of_a_relay_is_that_of_the_primary(lines):
    lines = [line.replace("eof after commit", "eof after rows") for line in lines]  # there it is none without it
    with new_primary() as primary:
        faults = Faults()
        witness, registry = Witness(primary.clock, faults), Registry()
        relay = Relay(
            ("127.0.0.1", primary.port), lambda client, peer: FaultedConnection(witness, registry, client, peer)
        )
        for line in lines:
            faults.add_fault(PlannedFault.parse(line))
        with relaying(relay) as port:
            through_relay = hear(port)
            wait_until(lambda: all(seen.reason is not None for seen in witness.connections))
        assert faults.pending == ()
    with new_primary() as primary:
        for line in lines:
            primary.faults.add_fault(PlannedFault.parse(line))
        alone = hear(primary.port)
    assert [(one.end, one.data) for one in through_relay] == [(one.end, one.data) for one in alone]
    for seen, expected in zip(witness.connections, primary.connections, strict=True):
        assert (seen.user, seen.server_id) == (expected.user, expected.server_id)
        assert seen.sent_gtids == expected.sent_gtids
        assert [each.text for each in seen.statements] == [each.text for each in expected.statements]
        assert seen.dump_start == expected.dump_start
