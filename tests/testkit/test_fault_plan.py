import threading

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit import fault_plan
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.fault_plan import FaultPlan, FaultRecord


def test_each_fault_is_given_as_often_as_it_says():
    plan = FaultPlan()
    once = plan.add_fault(PlannedFault.parse("cut after gtid"))
    twice = plan.add_fault(PlannedFault.parse("cut before gtid; times=2"))
    always = plan.add_fault(PlannedFault.parse("cut after rows; times=always"))
    assert plan.take(lambda fault: fault is once) == [once]
    assert plan.take(lambda fault: True) == [twice, always]
    assert [str(fault) for fault in plan.take(lambda fault: True)] == [str(twice), str(always)]
    assert plan.take(lambda fault: True) == [always]
    assert plan.unfinished == []
    plan.clear()
    assert plan.take(lambda fault: True) == []


def test_no_fault_is_given_twice_to_many_who_ask_at_once():
    plan = FaultPlan()
    for _ in range(50):
        plan.add_fault(PlannedFault.parse("cut after gtid; times=4"))
    taken = []

    def take():
        while faults := plan.take(lambda fault: True):
            taken.extend(faults)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 200


def test_what_happens_to_the_whole_primary_is_unfinished_until_it_has():
    plan = FaultPlan()
    crash = plan.add_fault(PlannedFault.parse("crash after gtid"))
    assert plan.unfinished == [crash]
    plan.take(lambda fault: True)
    assert plan.unfinished == [crash]
    plan.finish(crash)
    plan.finish(crash)
    assert plan.unfinished == []


def test_a_plan_and_its_past_are_bounded(monkeypatch):
    monkeypatch.setattr(fault_plan, "FAULTS_MAX", 3)
    monkeypatch.setattr(fault_plan, "RECORDS_MAX", 2)
    plan = FaultPlan()
    for _ in range(3):
        fault = plan.add_fault(PlannedFault.parse("cut after gtid"))
        plan.note(FaultRecord(fault=fault))
    assert len(plan.done) == 2
    with pytest.raises(ConfigurationError, match="3 faults are planned already"):
        plan.add_fault(fault)
