import pytest

from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.tables.fold.stored import StoredColumn, own_columns
from tests.case_table import data_beside
from tests.schema.conftest import type_of

DATA = data_beside(__file__)


def column(kind: SqlType) -> StoredColumn:
    table = TableVersion(database="d", name="t", columns=(TableColumn(id=1, name="c", type=kind),))
    return own_columns(table)[0]


@pytest.mark.parametrize(("declared", "value", "shown"), [*DATA["stored"], ("bit(10)", b"\5", "\0\5")])
def test_a_constant_is_stored_as_what_it_shows(declared, value, shown) -> None:
    made = column(type_of(declared))

    data = stored_value(made.column, made.type, value)

    assert data is not None
    assert made.fixed in (None, len(data))
    assert kind_of(made.column).shown(made.column, made.type, TextSettings("utf8mb4"))(data) == shown.encode()


@pytest.mark.parametrize(("declared", "value"), DATA["errors"])
def test_what_a_column_cannot_hold_as_it_is_is_an_error(declared, value) -> None:
    made = column(type_of(declared))

    with pytest.raises(ValueError, match=r"."):
        stored_value(made.column, made.type, value)
