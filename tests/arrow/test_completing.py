"""Which values an image after an update takes from the one before it; tests/interop/test_refusals.py asks servers."""

from ibbmaster.arrow.completing import completed, completed_columns
from ibbmaster.event.rows.changes import ABSENT
from ibbmaster.event.rows.column import TableSchema
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.schema.names import column_of

NAMES = ("id", "a", "made")
KNOWN = tuple(
    TableColumn(id=number, name=name, type=SqlType(word="int"), expression="id + 1" if name == "made" else None)
    for number, name in enumerate(NAMES)
)
COLUMNS = tuple(map(column_of, KNOWN))
SCHEMA = TableSchema(table_id=1, database="d", table="t", columns=COLUMNS, primary_key=(0,), has_names=True)
VERSION = TableVersion(database="d", name="t", columns=KNOWN)


def test_a_server_computes_a_generated_column_anew() -> None:
    assert completed_columns(SCHEMA, VERSION) == 0b011


def test_where_nobody_knows_what_is_generated_the_key_is_taken_alone() -> None:
    assert completed_columns(SCHEMA, None) == 0b001


def test_only_what_is_absent_is_taken() -> None:
    assert completed((1, 2, 3), (ABSENT, 5, ABSENT), 0b011) == (1, 5, ABSENT)
    assert completed((1, ABSENT, 3), (7, ABSENT, None), 0b111) == (7, ABSENT, None)
