"""The tests that MariaDB has of its replication end with replicas behind relays as they end without relays.

Statements go to the primary, each replica is connected to an `ibbmaster serve --from` that follows it. By default some
run; with --own-tests=all --timeout=0 all that are for relays (lanes/for_a_real_primary.tsv), in an hour or two.
"""

from collections import Counter

import pytest
from lanes.mariadb_suite import build_redirect, names, run_suite, unpacked
from lanes.relays import Relays, known_differences

from tests.case_table import rows_of

pytestmark = pytest.mark.slow

ENOUGH = 600  # cases: tests in up to three formats
SOME = [row[0] for row in rows_of(__file__, "mariadb_own_tests")]


@pytest.fixture
def place(memory_path):
    """In memory: the servers sync after each commit."""
    for name in ("alone", "again"):
        (memory_path / name).mkdir()
    return memory_path


def test_each_test_ends_behind_relays_as_without_them(place, tmp_path, pytestconfig):
    root = unpacked()
    has_all = pytestconfig.getoption("--own-tests") == "all"
    chosen = [name for name, reason in names(root).items() if not reason] if has_all else SOME
    with Relays(tmp_path / "relays") as relays:
        led = {"redirect": build_redirect(tmp_path), "port": relays.port}
        found = run_suite(root, place, chosen, **led)
        late = [name.replace(" ", ",", 1) for name, end in found.items() if end == "failure"]
        if late and not has_all:  # they have limits of their own, which a busy machine exceeds
            found |= run_suite(root, place / "again", late, **led)
    assert relays.problems == []
    assert relays.count >= len(SOME) / 2  # a test may leave the log as it is
    expected = run_suite(root, place / "alone", chosen) if has_all else dict.fromkeys(found, "passed")

    print(Counter(expected.values()), Counter(found.values()))
    known = known_differences("mariadb") if has_all else {}
    different = {name: end for name, end in found.items() if end != expected[name] == "passed"}
    assert {name: end for name, end in different.items() if name.partition(" ")[0] not in known} == {}
    assert Counter(found.values())["passed"] >= (ENOUGH if has_all else len(SOME))
