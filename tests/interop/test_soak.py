"""A soak: readers and real replicas that follow a log while it is written, through every kind of interruption.

`--soak-seconds N` says how long; `python -m tests.machinery.soak` does the same without replicas.
"""

import contextlib
import json
import math
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from lanes.cuts import CutPlan
from lanes.proxy import CuttingProxy

from ibbmaster.gtid import GtidPosition
from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID
from tests.machinery.soak_log import rows_of

CUT_BYTES_MAX = 6_000_000  # some groups have 900 kB, and what was received of one is received again
CATCH_UP_S = 300.0
FALLBACKS = ("Unexpected change", "olling back")


@pytest.mark.timeout(0)  # as long as --soak-seconds asks for; each wait has a limit of its own
def test_every_reader_and_every_replica_gets_each_group_once_and_in_order(seed, soak, new_replica):
    place = soak()
    account = {"user": place["user"], "password": place["password"]}
    with contextlib.ExitStack() as stack:
        replicas, plans = [], []
        for number, version in enumerate(installed_versions()):
            replica = new_replica(version, "--slave-net-timeout=4", server_id=REPLICA_SERVER_ID + number)
            replica.log = deque(replica.log)
            replicas.append(replica)
            plans.append(CutPlan(random.Random(f"{seed} {version}"), math.inf, size_max=CUT_BYTES_MAX))
            proxy = stack.enter_context(CuttingProxy(place["host"], place["port"], plans[-1]))
            replica.follow(proxy, heartbeat_period_s=0.2, **account)

        summary = soak()

        assert not summary["faults"], "\n".join(summary["faults"])
        assert summary["groups_read"] == summary["groups"] * summary["readers"]
        for plan in plans:
            plan.stop()
        for replica in replicas:
            replica.wait_for_gtid(summary["position"], timeout_s=CATCH_UP_S, tolerates_lost_connections=True)
            assert [line for line in replica.log if any(text in line for text in FALLBACKS)] == []
            for domain_id, gtid in GtidPosition.parse(summary["position"]).items():
                rows = replica.sql(f"SELECT * FROM soak{domain_id}.log ORDER BY id")
                assert rows == tuple(rows_of(place["seed"], domain_id, gtid.seq_no))


@pytest.fixture
def soak(seed, tmp_path, request, watch_log) -> Iterator[Callable[[], dict[str, Any]]]:
    """A soak in a process of its own; each call waits for the next line it prints."""
    words = ["--seconds", str(request.config.getoption("--soak-seconds")), "--seed", str(seed), "--json", "--stay"]
    log = tmp_path / "soak.log"
    watch_log("log of the soak", lambda: log.read_text()[-20_000:])
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.machinery.soak", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None

    def next_line() -> dict[str, Any]:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the soak has ended with {process.wait()}"
        found: dict[str, Any] = json.loads(line)
        return found

    yield next_line
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.close()
    process.wait()
