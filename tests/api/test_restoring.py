"""`ibbmaster.restore` before it has asked a server; tests/interop/test_restore.py has real ones."""

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError


@pytest.fixture
def log(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        for number in range(1, 6):
            log.append(f"0-1-{number}", f"CREATE DATABASE d{number}")
        yield log


def test_a_dry_run_for_a_new_server_needs_none(log):
    plan = ibbmaster.restore(log, None, until="0-1-4", before=True, skip=["0-1-2"], dry_run=True)
    assert (str(plan.start), str(plan.end), [*map(str, plan.skipped)]) == ("", "0-1-3", ["0-1-2"])


@pytest.mark.parametrize(
    ("into", "options", "problem"),
    [
        ("db1", {}, "expected mysql://USER@HOST"),
        ("mysql://root@db1,db2", {}, "one server is restored at a time"),
        (
            "mysql://root@192.0.2.1",
            {},
            "may be another machine, which cannot reach 127.0.0.1 of this one: give --listen",
        ),
        ("mysql://root@127.0.0.1", {"ca": "/nothing"}, "is for TLS that is verified"),
    ],
)
def test_what_names_no_server_is_refused(log, into, options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        ibbmaster.restore(log, into, until="0-1-4", **options)
