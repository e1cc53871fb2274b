"""Real replicas come to the right contents after every fault that they can recover from, alone or by START SLAVE."""

import time

import pytest
from lanes.primary import PASSWORD, USER
from lanes.replica import Replica

from ibbmaster.primary.server.registry import Registry
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.fault import PlannedFault, table_of
from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID
from ibbmaster.testkit.place import OF_CONVERSATION
from tests.case_table import data_beside

TIMEOUT_S = 60.0
STEP_S = 0.05

_DATA = data_beside(__file__)
#: Faults in a transaction of several statements, one after the other; `replica` is added.
FAULTS = _DATA["faults"]
OF_THE_PRIMARY = _DATA["of the primary"]


@pytest.mark.parametrize("profile", ["11.8"])
@pytest.mark.xdist_group("faults")
def test_replicas_have_the_right_contents_after_every_fault(profile, new_replica, watch_log):
    if not (versions := installed_versions()):
        pytest.skip("no MariaDB replica is on this machine: run `sh .ci/prepare tests`")
    replicas = [
        new_replica(version, "--slave-net-timeout=2", server_id=REPLICA_SERVER_ID + number)
        for number, version in enumerate(versions)
    ]
    with FixturePrimary(profile=profile, user=USER, password=PASSWORD, server_id=3) as primary:
        orders = primary.table("shop.orders", id="int primary key", total="decimal(10,2)", note="varchar(20)")
        for replica in replicas:
            replica.follow(primary, heartbeat_period_s=0.5)
            wait_for(replica, str(primary.log.position))
        for number, line in enumerate((*FAULTS, *OF_THE_PRIMARY)):
            place = PlannedFault.parse(line).place
            assert place is not None
            given = table_of(line)
            if place.landmark not in OF_CONVERSATION and "opening" not in line and "packet" not in line:
                given["gtid"] = f"0-3-{primary.log.state.latest(0).seq_no + 1}"
            if line in OF_THE_PRIMARY:
                primary.faults.add(**given)
            elif place.landmark in OF_CONVERSATION:  # who it is was not said yet
                primary.faults.add(**given, times=len(replicas))
            else:
                for server_id in range(REPLICA_SERVER_ID, REPLICA_SERVER_ID + len(replicas)):
                    primary.faults.add(**given, replica=server_id)
            if place.landmark in OF_CONVERSATION or "opening" in line:
                primary.in_loop(end_connections)
            with primary.transaction() as transaction:
                transaction.annotate("INSERT INTO orders VALUES …")
                orders.insert({"id": 3 * number, "total": 1}, {"id": 3 * number + 1, "total": 2})
                orders.insert(id=3 * number + 2, note=line[:20])
                orders.update(id=3 * number, total="0.5")
            position = str(primary.log.position)
            for replica in replicas:
                wait_for(replica, position, what=line)
            primary.faults.wait(TIMEOUT_S)
            expected = [(row["id"], row["total"], row["note"]) for row in orders.rows]
            for replica in replicas:
                assert list(replica.sql("SELECT * FROM shop.orders ORDER BY id")) == expected, line
        assert [record.problem for record in primary.faults.done if record.problem] == []
        assert len(primary.faults.done) == len(FAULTS) * len(replicas) + len(OF_THE_PRIMARY)


def end_connections(registry: Registry) -> None:
    for session in registry:
        registry.kill(session.connection_id, query_only=False)


def wait_for(replica: Replica, position: str, what: str = "") -> None:
    """Wait until a replica has applied a position; where an error stopped it, an operator starts it again."""
    deadline = time.monotonic() + TIMEOUT_S
    while replica.sql("SELECT MASTER_GTID_WAIT(%s, %s)", (position, STEP_S))[0][0] != 0:
        status = replica.status()
        assert status["Slave_SQL_Running"] == "Yes", (what, status["Last_SQL_Error"])
        assert time.monotonic() < deadline, (what, status)
        if status["Slave_IO_Running"] == "No":
            replica.sql("START SLAVE")
