from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.position import LogPosition


def test_a_fault_begins_with_its_place_and_what_was_read_in_parts_is_counted_together():
    damage = Fault(problem="lost", location=LogPosition.on_page(1, 2, 3))
    note = Fault(problem="odd", is_damage=False)

    assert (str(damage), damage.is_damage) == ("binlog-000001.ibb page 2 offset 3: lost", True)
    assert (str(note), note.is_damage) == ("note: odd", False)
    totals = Totals(files=1, pages=2, groups=3, oob_records=4)
    totals.add(Totals(files=10, pages=20, groups=30, oob_records=40))
    assert totals == Totals(files=11, pages=22, groups=33, oob_records=44)
