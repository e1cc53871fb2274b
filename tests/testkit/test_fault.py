import json
import threading

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.action import ACTIONS, PrimaryAction
from ibbmaster.testkit.fault import FaultPlan, FaultRecord, PlannedFault
from tests.case_table import cases_beside

NEEDED = {"stall": {"seconds": 1}, "drip": {"bytes_per_s": 9}, "answer": {"value": "x"}, "clock": {"seconds": -1}}

WRONG = [(json.loads(given), text) for given, (text,) in cases_beside(__file__).items()]
LONG = {"action": "insert", "place": "after gtid", "file": "x" * 600}


@pytest.mark.parametrize(("given", "text"), [*WRONG, (LONG, "insert: file 'xxx")])
def test_what_means_nothing_is_said_with_its_key(given, text):
    with pytest.raises(ConfigurationError) as caught:
        PlannedFault.of(given)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("word", ACTIONS)
def test_every_action_can_be_written_as_a_table_and_as_a_line(word):
    sides = ACTIONS[word].sides
    place = "before statement" if not sides else "at gtid" if "at" in [side.value for side in sides] else "after gtid"
    given = {"action": word, "place": place, **NEEDED.get(word, {})}
    line = "; ".join([f"{word} {place}", *(f"{key}={value}" for key, value in NEEDED.get(word, {}).items())])
    assert PlannedFault.parse(line) == PlannedFault.of(given)
    assert str(PlannedFault.of(given)) == f"{word} {place}"


def test_what_concerns_the_whole_primary_may_have_a_time_instead_of_a_place():
    for word, kind in ACTIONS.items():
        if issubclass(kind, PrimaryAction):
            assert str(PlannedFault.of({"action": word, "at": 2, **NEEDED.get(word, {})})) == f"{word} at 2 s"


@pytest.mark.parametrize(
    "line", ["", ";", "after gtid", "cut after gtid; by", "cut after gtid; by==", "x" * 10_000, "cutafter gtid"]
)
def test_a_line_that_says_no_fault_is_refused(line):
    with pytest.raises(ConfigurationError):
        PlannedFault.parse(line)


def test_a_line_has_values_as_toml_or_as_they_are():
    assert PlannedFault.parse("restart after gtid; profile=10.6; closed_s=1").action.profile == "10.6"
    assert PlannedFault.parse("error after gtid; text='1'; code=7").action.text == "1"
    fault = PlannedFault.parse("error after rows 2; gtid=0-1-7; code=1105; text=no = sense; times=always")
    assert (fault.action.code, fault.action.text, fault.times) == (1105, "no = sense", None)
    assert str(fault.place) == "after rows 2 of 0-1-7"


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
    monkeypatch.setattr("ibbmaster.testkit.fault.FAULTS_MAX", 3)
    monkeypatch.setattr("ibbmaster.testkit.fault.RECORDS_MAX", 2)
    plan = FaultPlan()
    for _ in range(3):
        fault = plan.add_fault(PlannedFault.parse("cut after gtid"))
        plan.note(FaultRecord(fault=fault))
    assert len(plan.done) == 2
    with pytest.raises(ConfigurationError, match="3 faults are planned already"):
        plan.add_fault(fault)
