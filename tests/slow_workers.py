"""Runs a test of Spark again where the machine was too busy for it: Spark gives ten seconds to a Python that plans."""

import pytest
from _pytest.runner import runtestprotocol

SLOW_WORKER = "Python worker failed to connect back"  # in ten seconds, on a machine that is too busy
RUNS_MAX = 6


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if "java" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for number in range(1, RUNS_MAX + 1):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if number == RUNS_MAX or not any(one.failed and SLOW_WORKER in one.longreprtext for one in reports):
            break
        item._initrequest()  # type: ignore[attr-defined]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
