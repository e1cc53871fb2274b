"""The tests that python-mysql-replication has of itself end through `serve` as they end without it.

They write to a real server, and reset its log before each test; a `serve` of its directory gives them their streams, or
a relay that follows it.
"""

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lanes.relays import Relays, known_differences

from ibbmaster.testkit.mariadb_server import PASSWORD, USER, RealPrimary

VERSION = "10.11"
CONSUMER, PACKAGE = "python-mysql-replication", "pymysqlreplication"
TIMEOUT_S = 800.0  # ends what hangs; a machine may be busy
NEEDS = 4  # tests need a server with other options, or another script than they bring along
SOME = "TestMultipleRow or TestMariadbBinlogStreamReader or lost_event or rotate or Rows or Latin1"


@pytest.fixture
def run_tests(tmp_path) -> Callable[[RealPrimary, tuple[str, int], str], dict[str, str]]:
    """How each chosen test ends that writes to a server and has its streams from a port."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{PACKAGE} is not installed")
    tests = Path(found.submodule_search_locations[0]) / "tests"

    def run(server: RealPrimary, streams: tuple[str, int], chosen: str) -> dict[str, str]:
        host, port = streams
        report = tmp_path / f"{port}.xml"
        plugins = ["-p", "through_serve", "-p", "no:cacheprovider"]
        places = [f"--junitxml={report}", f"--rootdir={tmp_path}", "-c", os.devnull, "-W", "ignore"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "ACCOUNT": USER,
            "ACCOUNT_PASSWORD": PASSWORD,
            "SERVER_PORT": str(server.port),
            "STREAM_HOST": host,
            "STREAM_PORT": str(port),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", str(tests), "--db=mariadb-10", *plugins, *places, "-k", chosen],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        print(f"{done.stdout}\n{done.stderr}")
        cases = ElementTree.parse(report).iter("testcase")
        return {f"{one.get('classname')}.{one.get('name')}": one[0].tag if len(one) else "passed" for one in cases}

    return run


@pytest.fixture(params=["serve", "relay"])
def new_streams(request, tmp_path, new_ibb_primary) -> Iterator[Callable[[RealPrimary], tuple[str, int]]]:
    """Where the streams of a server are to be had: of its directory, or of relays."""
    if request.param == "serve":
        yield lambda server: ("127.0.0.1", new_ibb_primary(server.data).port)
        return
    with Relays(tmp_path / "relays", user=USER, password=PASSWORD) as relays:
        yield lambda server: relays.address_of(server.port)
    assert relays.problems == []
    assert relays.count


def test_each_test_ends_through_serve_as_without_it(run_tests, new_server, new_streams, request, pytestconfig):
    has_all = pytestconfig.getoption("--own-tests") == "all"
    chosen = "test" if has_all else SOME
    alone, served = (new_server(VERSION, "--binlog-format=ROW") for _ in range(2))
    places = {alone: ("127.0.0.1", alone.port), served: new_streams(served)}
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(run_tests, server, streams, chosen) for server, streams in places.items()]
        expected, found = (run.result() for run in runs)

    print(Counter(expected.values()), Counter(found.values()))
    known = known_differences(CONSUMER) if request.node.callspec.params["new_streams"] == "relay" else {}
    different = {name: end for name, end in found.items() if end != expected[name]}
    assert different.keys() <= known.keys(), different
    assert found.keys() == expected.keys()
    ends = Counter(found.values())
    assert ends["passed"] >= (100 if has_all else 10) - len(known)
    assert ends["failure"] + ends["error"] <= NEEDS + len(known)
