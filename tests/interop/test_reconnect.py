"""Connections that break and servers that die: a replica ends with the same tables as if nothing had happened."""

import contextlib
import os
import random
import resource
import socket

import pytest
from lanes.capture import Capture
from lanes.proxy import Cut, CuttingProxy
from lanes.replica import Replica

VERSIONS = ["10.11", "11.8"]
DIALOG_BYTES = 2000  # about what a primary sends before the first event
TIMEOUT_S = 600.0
DESCRIPTORS = 1200  # some more than select() takes


def check_end(replica: Replica, capture: Capture, version: str) -> None:
    """Whether a replica comes to all that a real primary would have served."""
    replica.wait_for_gtid(capture.last_position, tolerates_lost_connections=True)
    expected = capture.replayed(version).tables
    assert replica.tables(list(expected)) == expected


def test_the_proxy_moves_and_cuts_bytes_of_descriptors_beyond_1023():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip(f"no more than {hard} descriptors may be open here")
    with contextlib.ExitStack() as stack:
        if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while stack.enter_context(open(os.devnull, "rb")).fileno() < 1024:
            pass
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        proxy = stack.enter_context(CuttingProxy(*listener.getsockname(), [Cut(after_bytes=3)]))
        client = stack.enter_context(socket.create_connection((proxy.host, proxy.port), timeout=30))
        listener.settimeout(30)
        server = stack.enter_context(listener.accept()[0])
        server.sendall(b"abcdef")

        assert b"".join(iter(lambda: client.recv(9), b"")) == b"abc"


# As mysql-test/suite/binlog_in_engine/crash_safe_slave.test
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["10.11/types-minimal-none", "11.8/large-commit"])
def test_a_primary_killed_in_mid_stream_is_followed_on_after_its_restart(
    name, version, seed, captures, new_ibb_primary, new_replica
):
    capture = captures[name]
    rng = random.Random(f"{seed} {name} {version}")
    cut = Cut(after_bytes=rng.randrange(DIALOG_BYTES, capture.size), waits=True)
    replica = new_replica(version)
    primary = new_ibb_primary(capture, "--tls", "off", *version_options(capture))

    with CuttingProxy(primary.host, primary.port, [cut]) as proxy:
        replica.follow(proxy)
        assert cut.reached.wait(TIMEOUT_S)
        primary.kill()
        cut.proceed.set()
        primary.start()
        check_end(replica, capture, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replica_stopped_and_started_goes_on_where_it_was(version, captures, new_primary, new_replica):
    capture = captures["11.8/ddl-trx-xa"]
    replica = new_replica(version)
    replica.follow(new_primary(capture, "--tls", "off"), start=False)

    for seq_no in (1, 20, 47, 48, 93):
        replica.sql(f"START SLAVE UNTIL master_gtid_pos = '0-1-{seq_no}'")
        replica.wait_for_gtid(f"0-1-{seq_no}")
        replica.sql("STOP SLAVE")
        assert replica.position == {f"0-1-{seq_no}"}

    expected = capture.replayed(version).tables
    assert replica.tables(list(expected)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_killed_replica_goes_on_where_it_was(version, captures, new_primary, new_replica):
    capture = captures["10.11/domains"]
    replica = new_replica(version, "--innodb-flush-log-at-trx-commit=1")
    replica.follow(new_primary(capture, "--tls", "off"), start=False)
    replica.sql("START SLAVE UNTIL master_gtid_pos = '0-1-3'")
    replica.wait_for_gtid("0-1-3")

    replica.kill()
    replica.start()
    replica.sql("START SLAVE")
    check_end(replica, capture, version)


# As mysql-test/suite/binlog_in_engine/rpl_master_stop.test
@pytest.mark.parametrize("version", VERSIONS)
def test_a_directory_that_grows_is_followed(
    version, tmp_path, captures, classic_files, import_files, new_ibb_primary, new_replica
):
    capture = captures["10.11/domains"]
    files = classic_files(capture)
    import_files(files[:2], tmp_path / "ibb", "--max-file-size", "64K")
    primary = new_ibb_primary(tmp_path / "ibb", "--tls", "off")
    replica = new_replica(version)
    replica.follow(primary)

    for file in files[2:5]:  # while it is followed
        import_files([file], tmp_path / "ibb", "--append")
    primary.stop()  # while the primary is down
    import_files(files[5:7], tmp_path / "ibb", "--append")
    primary.start()
    import_files(files[7:], tmp_path / "ibb", "--append")

    check_end(replica, capture, version)


def version_options(capture: Capture) -> list[str]:
    """A stream of an old primary has the old primary's version; see test_replica."""
    return ["--server-version", capture.facts["server"]] if capture.version == "10.11" else []
