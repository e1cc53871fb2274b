"""The tests that go-mysql has of its syncer and of canal end with streams of a relay as without and read the same rows.

They write to a real server, and a relay that follows it sends their streams. drivers/go_mysql/changed_copy.py says what
is changed in them. By default some run, with --own-tests=all every one that needs a server.
"""

import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from lanes.drivers import driver_command
from lanes.primary import tool_command
from lanes.relays import Relays, known_differences

from ibbmaster.testkit.mariadb_server import RealPrimary

TIMEOUT_S = 400  # of a package; ends what hangs, and a machine may be busy
SHOW_EVENTS = {"replication": ["-out"], "canal": []}  # of each package; canal shows rows by itself
SOME = "^TestMariadb(GTID|Position)Sync$|^TestCanal|^TestAnalyze"
ENOUGH = {"some": 8, "all": 15}  # that pass; three more are about GTIDs of MySQL
END = re.compile(r"--- (PASS|FAIL|SKIP): (Test\S+) \(")
RUN = re.compile(r"^=== RUN +(?=Test)", re.M)
ROWS = re.compile(r"^=== (\w+RowsEventV\d) ===\n(?:.*\n)*?.*Values:\n((?:.+\n)*)|: OnRow (.*)", re.M)
POINTER = re.compile(r"\(0x[0-9a-f]+\)")
UNTIL_A_TIME = "Codec"  # copies the log for two seconds, and reads what it has then

Ended = tuple[dict[str, str], list[tuple[str, ...]]]


@pytest.fixture
def run_tests(tmp_path, pytestconfig) -> Callable[[RealPrimary, tuple[str, int] | None], Ended]:
    """How each chosen test ends, and the rows that they read, where streams come from a port or from the server."""
    programs = {package: driver_command("go_mysql", package) for package in SHOW_EVENTS}
    has_all = pytestconfig.getoption("--own-tests") == "all"

    def run(server: RealPrimary, relay: tuple[str, int] | None) -> Ended:
        place = tmp_path / str(server.port)
        place.mkdir()
        dump = place / "mysqldump"
        dump.write_text(f'#!/bin/sh\nexec {shlex.join(tool_command(server.programs.version, "mariadb-dump"))} "$@"\n')
        dump.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
            "SERVER": f"{server.host}:{server.port}",
            "RELAY": "" if relay is None else f"{relay[0]}:{relay[1]}",
        }
        server.sql("CREATE DATABASE IF NOT EXISTS test")
        chosen = ["-test.run=Suite$", f"-testify.m={'' if has_all else SOME}", f"-test.timeout={TIMEOUT_S}s"]
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "backslashreplace"}
        ends, rows = {}, []
        for package, program in programs.items():
            command = [*program, "-test.v", *chosen, *SHOW_EVENTS[package]]
            done = subprocess.run(command, cwd=place, env=environment, check=False, **options)
            print(f"{done.stdout[-20000:]}\n{done.stderr[-10000:]}")
            ends |= {test: end for end, test in END.findall(done.stdout)}
            read = [part for part in RUN.split(done.stdout) if UNTIL_A_TIME not in part.partition("\n")[0]]
            rows += ROWS.findall(POINTER.sub("", "".join(read)))
        return ends, rows

    return run


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_each_test_of_go_mysql_ends_with_a_relay_as_without_it(version, run_tests, new_server, tmp_path, pytestconfig):
    alone, followed = (new_server(version, "--binlog-format=ROW") for _ in range(2))
    with Relays(tmp_path / "relays") as relays, ThreadPoolExecutor() as threads:
        without = threads.submit(run_tests, alone, None)
        found, read = run_tests(followed, relays.address_of(followed.port))
        expected, expected_rows = without.result()
    assert relays.problems == []
    assert relays.count

    print(Counter(expected.values()), Counter(found.values()), len(read))
    known = known_differences("go-mysql")
    assert {test: end for test, end in found.items() if end != expected.get(test)}.keys() <= known.keys()
    assert found.keys() == expected.keys()
    assert read == expected_rows
    passed = [test for test, end in found.items() if end == "PASS" and "/" in test]
    assert len(passed) >= ENOUGH[pytestconfig.getoption("--own-tests")]
