import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.event.rows.large import ALL_ROWS
from ibbmaster.replication.event.rows.partial import encode_fragments
from ibbmaster.rows.walk import walk
from tests.written_log import Said, inserted

T = written_table("d.t", {"id": "int", "a": "varchar(900)"}, table_id=1, primary_key=["id"])
U = written_table("d.u", {"id": "int"}, table_id=2, primary_key=["id"])
STATEMENT = Said("SAVEPOINT a").event()
MAP_T, ROWS_T = inserted(T, [1, "x" * 900])
MAP_U, ROWS_U = inserted(U, [1])


def names(event: bytes, number: int) -> str | None:
    """Which table a TABLE_MAP is of, and where it stands; `d.u` is not wanted."""
    return None if b"\x01d\x00\x01u\x00" in event else f"t at {number}"


def walked(*events: bytes) -> list[tuple[int, bytes, str | None]]:
    return list(walk(events, ALL_ROWS, names))


def test_each_event_comes_with_its_table_and_those_of_unwanted_tables_are_left_out() -> None:
    found = walked(STATEMENT, MAP_T, MAP_U, ROWS_U, ROWS_T, STATEMENT)

    assert found == [(0, STATEMENT, None), (4, ROWS_T, "t at 1"), (5, STATEMENT, None)]


def test_a_table_is_named_anew_by_a_later_event() -> None:
    assert [table for _, _, table in walked(MAP_T, ROWS_T, MAP_T, ROWS_T)] == ["t at 0", "t at 2"]


def test_fragments_are_one_event_where_the_last_of_them_stands() -> None:
    parts = list(encode_fragments(ROWS_T, 300))

    assert len(parts) > 2
    assert walked(MAP_T, *parts) == [(len(parts), ROWS_T, "t at 0")]
    with pytest.raises(EventError, match="the group ends inside the fragments of a row event"):
        walked(MAP_T, *parts[:-1])


def test_a_row_event_of_no_table_is_an_error() -> None:
    with pytest.raises(EventError, match="row event of table 2, which no TABLE_MAP of its group names"):
        walked(MAP_T, ROWS_U)
