"""Generated columns that images leave out; tests/interop/test_answers.py compares their rows with a real server's."""

import pytest
from lanes.answers import SESSIONS, OurTables, values_of

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.expr.formulas import NotSimpleError
from ibbmaster.tables.fold.computed import affected, compute, computed_columns
from ibbmaster.tables.fold.stored import StoredLayout, own_columns
from ibbmaster.testkit import FixturePrimary, RowFormat, RowImage
from tests.table_versions import BIGINT, INT, TEXT, column, version

TABLE = version(
    column(1, "id"),
    column(2, "A b"),
    column(3, "twice", BIGINT, expression="`a b` * 2"),
    column(4, "name", TEXT),
    column(5, "other", INT, expression="rand() + `name`"),
    column(6, "again", INT, expression="`twice` + 1"),
)
LAYOUT = StoredLayout(tuple(own_columns(TABLE)), 0)
COLUMNS = list(computed_columns(TABLE, LAYOUT))


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def updated(values: list[bytes | None], told: set[int], unknown: tuple[int, ...] = ()) -> set[int]:
    return {column.id for column in compute(affected(COLUMNS, told), LAYOUT, values, unknown)}


def test_what_an_image_leaves_out_is_computed_from_what_it_has() -> None:
    values = [number(1), number(-4), None, None, None, None]

    assert {column.id for column in compute(COLUMNS, LAYOUT, values, ())} == {5, 6}
    assert values[2] == number(-8, 8)  # rand() is nobody's to repeat, and what is made of `twice` is not simple
    assert values[4:] == [None, None]


def test_a_column_of_what_did_not_change_stays_as_it_is() -> None:
    values = [number(1), number(5), number(10, 8), None, number(7), number(11)]

    assert updated(values, {0}) == set()
    assert values == [number(1), number(5), number(10, 8), None, number(7), number(11)]
    assert updated(values, {0, 3}) == {5}


def test_a_column_changes_with_what_another_one_is_made_of() -> None:
    values = [number(1), number(6), number(10, 8), None, number(7), number(11)]

    assert updated(values, {1}) == {6}
    assert values == [number(1), number(6), number(12, 8), None, number(7), None]
    assert updated(values, {1, 2, 5}) == set()


def test_what_is_made_of_an_unknown_column_is_unknown() -> None:
    values = [number(1), number(5), None, None, None, None]

    assert updated(values, {1}, unknown=(2,)) == {3, 6}
    assert values[2] is None


def test_a_value_that_the_column_cannot_hold_is_not_told() -> None:
    (twice, *_) = COLUMNS
    assert twice.value(LAYOUT, [None] * 6) is None
    with pytest.raises(NotSimpleError):
        COLUMNS[1].value(LAYOUT, [number(1)] * 6)


IMAGES = [RowFormat(image=image, has_generated=has) for image in RowImage for has in (True, False)]
OTHERS = {
    "a": "int",
    "t": "varchar(20)",
    "twice": "int as (a * 2) stored",
    "lost": "varchar(20) as (reverse(t)) stored",
}


def answers(primary: FixturePrimary, folder, *queries: str) -> list[object]:
    ours = OurTables(ClassicBinlog(primary.save_classic(folder)))
    found: list[object] = []
    for query in queries:
        try:
            found.append(sorted(tuple(values_of(row, 3)) for row in ours.answer(query, SESSIONS[0]).rows))
        except RefusedError as error:
            found.append(error.err.text.partition("because ")[2])
    return found


@pytest.mark.parametrize("way", IMAGES, ids=lambda way: f"{way.image.value}-{way.has_generated}")
@pytest.mark.parametrize("key", ["primary key", ""])
def test_rows_are_followed_whose_images_have_no_generated_columns(tmp_path, way: RowFormat, key: str) -> None:
    with FixturePrimary(profile="classic-11.8") as primary:
        table = primary.table("d.t", id=f"int {key}", **OTHERS)
        primary.format = way
        table.insert({"id": 1, "a": 1, "t": "ab", "lost": "ba"}, {"id": 2, "a": 2, "t": "cd", "lost": "dc"})
        table.insert({"id": 3, "a": 3, "t": "ef", "lost": "fe"}, {"id": 4, "a": 4, "t": "ef", "lost": "fe"})
        table.update({"id": 1}, a=7, lost="ba")
        table.update({"id": 2}, id=5, a=8, lost="dc")
        table.delete({"id": 3})
        whole = answers(primary, tmp_path / "1", "select id, twice, lost from d.t")
        table.update({"id": 1}, t="xy", lost="yx")
        rows, last, one = answers(
            primary,
            tmp_path / "2",
            *("select id, twice, t from d.t", "select id, twice, lost from d.t where id = 5"),
            "select id, twice, lost from d.t where id = 1",
        )

    assert whole == [[(b"1", b"14", b"ba"), (b"4", b"8", b"fe"), (b"5", b"16", b"dc")]]
    assert rows == [(b"1", b"14", b"xy"), (b"4", b"8", b"ef"), (b"5", b"16", b"cd")]
    if way.has_generated:
        assert (last, one) == ([(b"5", b"16", b"dc")], [(b"1", b"14", b"yx")])
        return
    reason = "an UPDATE has no value for the generated column lost"
    assert one == reason
    assert last == ([(b"5", b"16", b"dc")] if key else reason)  # without a key, it is so of all rows


def test_more_cells_in_doubt_than_are_remembered_are_a_column_in_doubt(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ibbmaster.tables.fold.contents.CELLS_MAX", 2)
    with FixturePrimary(profile="classic-11.8") as primary:
        table = primary.table("d.t", id="int primary key", **OTHERS)
        primary.format = RowFormat(has_generated=False)
        for number in range(5):
            table.insert(id=number, a=1, t="ab", lost="ba")
        for number in range(2):
            table.update(id=number, t="cd", lost="dc")
        before = answers(primary, tmp_path / "1", "select id, t, lost from d.t where id > 1")
        table.update(id=2, t="cd", lost="dc")
        after = answers(primary, tmp_path / "2", "select id, t, lost from d.t where id > 2")

    assert before == [[(number, b"ab", b"ba") for number in (b"2", b"3", b"4")]]
    assert after == ["an UPDATE has no value for the generated column lost"]


def test_cells_in_doubt_cost_a_column_and_no_row_when_the_table_changes(tmp_path) -> None:
    with FixturePrimary(profile="classic-11.8") as primary:
        table = primary.table("d.t", id="int primary key", **OTHERS)
        primary.format = RowFormat(has_generated=False)
        table.insert(id=1, a=1, t="ab", lost="ba")
        table.insert(id=2, a=1, t="ab", lost="ba")
        table.update(id=1, t="cd", lost="dc")
        primary.ddl("ALTER TABLE d.t MODIFY id BIGINT UNSIGNED, ADD more INT AS (a + 5) STORED")
        rows, one = answers(
            primary, tmp_path / "1", "select id, t, more from d.t", "select id, t, lost from d.t where id = 1"
        )

    assert rows == [(b"1", b"cd", b"6"), (b"2", b"ab", b"6")]
    assert one == "an UPDATE has no value for the generated column lost"
