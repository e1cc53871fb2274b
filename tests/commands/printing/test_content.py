from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.printing.content import GroupContent, StatementItem
from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.replication.event.types import EventType
from tests.machinery.events import make_event
from tests.written_log import write_log

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8"


def items_of(name):
    with ibbmaster.open(CLASSIC / name) as log:
        return {str(group.gtid): list(GroupContent(group).items()) for group in log}


def texts(items):
    return [item.statement.text if isinstance(item, StatementItem) else item.change.kind for item in items]


def test_statements_and_rows_come_in_the_order_of_the_log():
    assert texts(items_of("ddl-trx-xa")["0-1-21"]) == [
        *("insert", "update", "insert"),
        *("SAVEPOINT `a`", "SAVEPOINT `b`", "update"),
    ]


def test_a_commit_says_no_more_than_the_end_of_its_group():
    assert texts(items_of("ddl-trx-xa")["0-1-29"]) == ["insert"]


def test_an_xa_transaction_is_prepared_and_then_ended():
    found = items_of("ddl-trx-xa")
    assert texts(found["0-1-81"]) == ["insert", "XA PREPARE X'7468726565',X'',1"]
    assert texts(found["0-1-85"]) == ["XA COMMIT X'6231',X'',1"]


def test_a_value_that_cannot_be_read_is_an_error_or_its_bytes(half_readable, contents):
    with pytest.raises(UndecodableError, match=r"d\.t column c of type VARCHAR.*\(in group 0-1-2\)"):
        [list(one.items()) for one in contents(half_readable)]
    *_, (_, change) = (item for one in contents(half_readable, keeps_bytes=True) for item in one.items())
    assert change.after["c"].data == b"\xff\xfe"


def test_a_statement_that_is_damaged_names_its_group(tmp_path, contents):
    write_log(tmp_path / "log", [[make_event(EventType.QUERY, 1, bytes(5))]])
    with pytest.raises(EventError, match=r"^group 0-1-1: QUERY of 24 bytes"):
        [item for one in contents(tmp_path / "log") for item in one.items()]
