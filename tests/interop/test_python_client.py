"""python-mysql-replication sees the same stream from us as from a real primary that serves the capture's own files."""

import importlib.metadata

import pytest
from lanes.python_client import read_stream

from tests.machinery.tables import rows_of

# What this version of the client dies of, with every primary.
KNOWN_VERSION = "1.0.17"
KNOWN_FAILURES = dict(rows_of(__file__, "python_client_failures"))


@pytest.mark.parametrize("client", ["python"])
def test_the_client_sees_what_it_sees_of_a_real_primary(
    served_capture, cell, new_primary, new_real_primary, primary_is_real
):
    # This client sends one byte too much. A real primary closes at the end of a stream nobody waits at, and because
    # of that unread byte with a reset, which may cost the client the last events: so wait for the heartbeat instead.
    expected = read_stream(new_real_primary(served_capture), uses_tls=False, waits=True)
    # It also takes it that there are checksums when it looks for the names of columns: have them as the file has.
    has_checksums = served_capture.facts["options"]["binlog-checksum"] == "CRC32"
    profile = f"classic-{served_capture.version}" if has_checksums else "engine"
    primary = new_primary(served_capture, "--tls", "off", "--profile", profile)
    seen = read_stream(primary, uses_tls=False, waits=primary_is_real)

    if importlib.metadata.version("mysql-replication") == KNOWN_VERSION:
        assert str(expected.error).startswith(KNOWN_FAILURES.get(served_capture.id, "None"))
    assert seen == expected
    if expected.error is not None:
        cell.mark("fails as with a real primary", expected.error.splitlines()[0])


@pytest.mark.parametrize("waits", [False, True], ids=["to the end", "to the first heartbeat"])
@pytest.mark.parametrize("uses_tls", [False, True], ids=["in clear", "TLS"])
@pytest.mark.parametrize("profile", ["engine", "compat"])
def test_the_client_reads_to_the_end(profile, uses_tls, waits, captures, new_ibb_primary):
    capture = captures["10.11/domains"]

    seen = read_stream(new_ibb_primary(capture, "--profile", profile), uses_tls=uses_tls, waits=waits)

    assert seen.error is None
    assert sum("MariadbGtidEvent" in event for event in seen.events) == capture.facts["event_groups"]
    assert sum("WriteRowsEvent" in event for event in seen.events) == capture.facts["events"]["WRITE_ROWS_V1"]
