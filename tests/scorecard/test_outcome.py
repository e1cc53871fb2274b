from dataclasses import replace

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.testkit.fault import FaultRecord, PlannedFault
from ibbmaster.testkit.witness import SeenConnection, SeenStatement, SentEvent
from ibbmaster_scorecard.journal import ToldEvent
from ibbmaster_scorecard.matching import LoggedChange, LoggedGroup
from ibbmaster_scorecard.outcome import EVENT_MAX, LINES_MAX, LOG_MAX, RunRecord, cell_of
from ibbmaster_scorecard.results import Grade

CHANGE = LoggedChange(table="shop.orders", kind="insert", after={"id": 1}, columns=("id",))
GROUP = LoggedGroup(gtid="0-3-101", changes=(CHANGE,))
FAULT = PlannedFault.parse("cut after gtid; gtid=0-3-101")


def told(what: str, at: float, **given: object) -> ToldEvent:
    return ToldEvent(what=what, at=at, process=1, **given)  # type: ignore[arg-type]


RIGHT = (
    told("begin", 1.0, gtid="0-3-101"),
    told("change", 2.0, table="shop.orders", kind="insert", after={"id": 1}),
    told("commit", 3.0, gtid="0-3-101"),
)
EXACT = RunRecord(
    consumer="mine",
    scenario="plain",
    groups=(GROUP,),
    told=RIGHT,
    restarts=0,
    exit_code=None,
    log="",
    last_log="",
    connections=(),
    connected=(),
    dumps=(),
    faults=(),
    fault_at=None,
    unfinished=(),
    seconds=1.234,
)


def seen(number: int, *gtids: str, statement: str = "") -> SeenConnection:
    connection = SeenConnection(number=number, host="127.0.0.1", port=1, dump_file=("binlog.000001", 4))
    connection.sent += [SentEvent(type="GTID", gtid=Gtid.parse(gtid), ends_group=False, end=0) for gtid in gtids]
    connection.statements += [SeenStatement(text=statement, at=0.0, after_s=0.0)] if statement else []
    return connection


def test_who_tells_everything_is_exact_unless_the_fault_never_came():
    cell = cell_of(EXACT)
    assert (cell.consumer, cell.scenario, cell.grade, cell.seconds) == ("mine", "plain", Grade.EXACT, 1.23)
    assert cell.arrived == tuple(map(str, RIGHT))
    cell = cell_of(replace(EXACT, unfinished=(FAULT,)))
    assert (cell.grade, cell.not_run) == (None, "it never came to the place of: cut after gtid of 0-3-101")


@pytest.mark.parametrize(
    "given",
    [{"faults": (FaultRecord(fault=FAULT),)}, {"told": RIGHT[:1], "exit_code": 1, "last_log": "no", "log": "no"}],
    ids=["one of its faults happened", "it lost something"],
)
def test_else_the_summary_says_what_never_happened(given):
    cell = cell_of(replace(EXACT, unfinished=(FAULT,), **given))
    assert cell.grade is not None
    assert "what never happened: cut after gtid of 0-3-101" in cell.summary


def test_a_dump_that_began_again_is_told_with_its_place_and_time():
    first, by_gtid = seen(1, "0-3-101"), seen(2, statement="SET @slave_connect_state = '0-3-100'")
    dumps = ((1.0, first), (2.5, by_gtid), (4.0, seen(3)))
    cell = cell_of(replace(EXACT, connections=[one for _, one in dumps], dumps=dumps, fault_at=2.0))
    assert [(resume.position, resume.after_s) for resume in cell.resumes] == [
        ("0-3-100", 0.5),
        ("binlog.000001:4", 2.0),
    ]
    assert cell.sent == ("connection 1: GTID 0-3-101",)
    assert cell.statements == ("SET @slave_connect_state = '0-3-100'",)


def test_the_position_is_the_last_one_that_was_told():
    positions = [told("position", 4.0 + number, position={"gtid": f"0-3-{101 + number}"}) for number in range(2)]
    assert cell_of(EXACT).position == ""
    assert cell_of(replace(EXACT, told=[*RIGHT, *positions])).position == '{"gtid": "0-3-102"}'


@pytest.mark.parametrize(("fault_at", "recovered_s"), [(None, None), (1.5, 0.5), (2.5, None)])
def test_it_has_recovered_with_the_first_new_change(fault_at, recovered_s):
    assert cell_of(replace(EXACT, fault_at=fault_at)).recovered_s == recovered_s


def test_what_is_kept_is_bounded():
    many = [told("statement", 1.0, text=f"{number} {'x' * 400}") for number in range(LINES_MAX + 5)]
    errors = [told("error", 1.0, text=str(number)) for number in range(50)]
    record = FaultRecord(fault=FAULT, event=bytes(2 * EVENT_MAX))
    cell = cell_of(replace(EXACT, told=[*many, *errors], log="y" * 2 * LOG_MAX, faults=[record] * 50))
    assert len(cell.arrived) == LINES_MAX
    assert max(map(len, cell.arrived)) == 300
    assert any(line.startswith("… ") for line in cell.arrived)
    assert (len(cell.told), len(cell.bytes), len(cell.log)) == (20, 20, LOG_MAX)
    assert len(cell.bytes[0].event) == 2 * EVENT_MAX
