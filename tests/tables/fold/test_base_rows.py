from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.tables.fold.base_rows import ROWS_AT_ONCE, columns_left_out, stored_rows
from ibbmaster.tables.fold.stored import StoredLayouts, own_columns

TEXT = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
TABLE = TableVersion(
    database="d",
    name="t",
    columns=(
        TableColumn(id=1, name="id", type=SqlType(word="int")),
        TableColumn(id=2, name="name", type=SqlType(word="varchar", length=9, **TEXT)),
        TableColumn(id=3, name="twice", type=SqlType(word="int"), expression="id * 2"),
        TableColumn(id=4, name="unseen", type=SqlType(word="int"), is_invisible=True),
    ),
)
LAYOUT = StoredLayouts().add(own_columns(TABLE))


class Inserted(NamedTuple):
    columns: tuple[str, ...] | None
    rows: Iterator[tuple[str | bytes | None, ...]]
    table: tuple[str, str] = ("d", "t")


def values_in(inserted: Inserted) -> list[list[bytes | None]]:
    return [LAYOUT.values(image) for rows in stored_rows(TABLE, LAYOUT, inserted) for image, _ in rows]


def test_rows_are_stored_by_the_names_of_their_columns_or_as_select_shows_them() -> None:
    named = Inserted(("NAME", "id"), iter([("a", "7"), (None, "-1")]))
    unnamed = Inserted(None, iter([("7", "a", "14")]))

    assert values_in(named) == [[b"\7\0\0\0", b"a", None, None], [b"\xff" * 4, None, None, None]]
    assert values_in(unnamed) == [[b"\7\0\0\0", b"a", b"\x0e\0\0\0", None]]
    assert [column.name for column in columns_left_out(TABLE, named)] == ["twice", "unseen"]


def test_many_rows_come_some_at_a_time() -> None:
    inserted = Inserted(("id",), iter([(str(number),) for number in range(ROWS_AT_ONCE + 5)]))

    assert [len(rows) for rows in stored_rows(TABLE, LAYOUT, inserted)] == [ROWS_AT_ONCE, 5]


@pytest.mark.parametrize(
    ("columns", "row", "problem"),
    [
        (("id", "name"), ("1",), "row 1 has 1 values, expected 2"),
        (("id",), ("one",), "row 1 column id: 'one' is no number"),
        (("what",), ("1",), "column what, which the table does not have"),
    ],
)
def test_a_row_that_is_none_of_its_table_is_an_error_with_its_place(columns, row, problem) -> None:
    with pytest.raises(ConfigurationError, match=rf"^the dump's rows of d.t: {problem}$"):
        values_in(Inserted(columns, iter([row])))
