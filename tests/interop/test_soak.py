"""A soak: real replicas follow a log while it is written in every way, through connections that are cut.

`--soak-seconds N` says how long, and `--soak-minutes N` how long a relay is at steady work. Readers of every other kind
of interruption: simulation/test_served_streams.py.
"""

import contextlib
import math
import random
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest
from lanes.primary import run_program
from lanes.proxy import CutPlan, CuttingProxy

from ibbmaster.gtid import GtidPosition
from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID
from tests.machinery.soak import GROWTH_MAX, Sample, grown
from tests.machinery.soak_feeder import PASSWORD, USER, rows_of

CUT_BYTES_MAX = 6_000_000  # some groups have 900 kB, and what was received of one is received again
CATCH_UP_S = 300.0


@pytest.mark.timeout(0)  # as long as --soak-seconds asks for; each wait has a limit of its own
def test_every_replica_gets_each_group_once_and_in_order(seed, request, feeder, new_replica):
    port = int(said(feeder, "port"))
    with contextlib.ExitStack() as stack:
        replicas, plans = [], []
        for number, version in enumerate(installed_versions()):
            replica = new_replica(version, "--slave-net-timeout=4", server_id=REPLICA_SERVER_ID + number)
            replica.log = deque(replica.log)
            replicas.append(replica)
            plans.append(CutPlan(random.Random(f"{seed} {version}"), math.inf, size_max=CUT_BYTES_MAX))
            proxy = stack.enter_context(CuttingProxy("127.0.0.1", port, plans[-1]))
            replica.follow(proxy, heartbeat_period_s=0.2, user=USER, password=PASSWORD)

        with pytest.raises(subprocess.TimeoutExpired):  # it does not end by itself
            feeder.wait(request.config.getoption("--soak-seconds"))
        feeder.stdin.write("stop\n")
        feeder.stdin.flush()
        position = said(feeder, "end")
        for plan in plans:
            plan.stop()
        for replica in replicas:
            replica.wait_for_gtid(position, timeout_s=CATCH_UP_S, tolerates_lost_connections=True)
            replica.expect_no_fallback()
            for domain_id, gtid in GtidPosition.parse(position).items():
                rows = replica.sql(f"SELECT * FROM soak{domain_id}.log ORDER BY id")
                assert rows == tuple(rows_of(seed, domain_id, gtid.seq_no))


@pytest.fixture
def feeder(seed, tmp_path, watch_log) -> Iterator[subprocess.Popen[str]]:
    errors = tmp_path / "feeder.log"
    watch_log("log of the feeder", lambda: errors.read_text()[-20_000:])
    command = [sys.executable, "-m", "tests.machinery.soak_feeder", str(tmp_path / "log"), str(seed)]
    pipe = subprocess.PIPE
    with errors.open("w") as log, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True) as process:
        yield process
        process.stdin.close()


def said(feeder: subprocess.Popen[str], word: str) -> str:
    line = feeder.stdout.readline()
    assert line.startswith(f"{word} "), line
    return line.removeprefix(f"{word} ").rstrip()


@pytest.mark.slow
@pytest.mark.timeout(0)  # as long as --soak-minutes asks for
def test_a_relay_at_steady_work_grows_in_nothing(request):
    """Few commits: what the blocks of a tail may take in memory is not full after a minute."""
    if not installed_versions():
        pytest.skip("no MariaDB is installed")
    minutes = request.config.getoption("--soak-minutes")
    soak = [sys.executable, "-m", "tests.machinery.soak", "--minutes", minutes, "--commits", 20, "--warm-up", 0.25]
    print(run_program(soak, timeout=minutes * 60 + 900))


@pytest.mark.parametrize("name", ["memory_mb", "descriptors", "threads", "p99_ms"])
def test_what_grows_steadily_is_named_and_a_peak_is_none(name):
    most = getattr(GROWTH_MAX, name)
    flat = [Sample(float(at), 80, 28, 9, 2, 20) for at in range(100)]
    peak = [one._replace(**{name: 10 * most}) if 50 <= one.at_s < 60 else one for one in flat]
    steady = [one._replace(**{name: getattr(one, name) + one.at_s / 50 * most}) for one in flat]
    assert grown(peak, Sample._fields[1:], 0.25) == []
    assert grown(steady, Sample._fields[1:], 0.25) == [name]
