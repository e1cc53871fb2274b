from decimal import Decimal
from pathlib import Path

import pytest

from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.rows import shape as shapes
from ibbmaster.schema.model import SqlType
from ibbmaster.schema.names import column_of
from tests.schema.conftest import type_of
from tests.table_versions import BIGINT, INT, TEXT, column, named_by_event, place, version

ID = column(1, "id")


def schema_of(table):
    return shapes.version_shape("db.t", table).schema


def values(newest, older, image):
    shape = shapes.version_shape("db.t", newest)
    return [origin.value(image) for origin in shape.origins(schema_of(older), older)]


def test_an_added_column_holds_what_its_alter_table_gave() -> None:
    new = version(
        ID,
        column(2, "n", default="9", first_value="7"),
        column(3, "t", TEXT, first_value="''"),
        column(4, "u", first_value="?"),
        since=place(5),
    )

    assert values(new, version(ID), (1,)) == [1, 7, "", ABSENT]


def test_a_column_dropped_and_added_again_is_another_one() -> None:
    old = version(ID, column(2, "a"))
    new = version(ID, column(3, "a", first_value="NULL"), since=place(5))

    assert values(new, old, (1, 2)) == [1, None]
    assert values(old, new, (1, 2)) == [1, None]  # dropped since: nothing to say of it


def test_another_table_of_that_name_is_read_by_name() -> None:
    old = version(column(11, "id"), column(12, "b"), key=11)
    new = version(ID, column(2, "a"), column(3, "b"), since=place(5))

    assert values(new, old, (1, 2)) == [1, None, 2]


def test_types_widen() -> None:
    old = version(ID, column(2, "d", SqlType(word="decimal", length=4, scale=1)), column(3, "w", SqlType(word="date")))
    new = version(
        column(1, "id", SqlType(word="decimal", length=20, scale=2)),
        column(2, "d", SqlType(word="decimal", length=8, scale=3)),
        column(3, "w", SqlType(word="datetime", scale=1)),
        since=place(5),
    )

    found = values(new, old, (-1, Decimal("1.5"), "2020-00-01"))
    assert list(map(str, found)) == ["-1.00", "1.500", "2020-00-01 00:00:00.0"]
    assert values(new, old, (None, None, None)) == [None, None, None]
    assert values(new, old, (ABSENT, None, None))[0] is ABSENT


def test_a_generated_column_that_an_image_leaves_out_is_computed() -> None:
    table = version(
        ID,
        column(2, "a"),
        column(3, "double", expression="`a` * 2"),
        column(4, "half", expression="`a` / 2"),
        column(5, "of a generated one", expression="`double` + 1"),
    )

    assert values(table, table, (1, 5, ABSENT, ABSENT, ABSENT)) == [1, 5, 10, ABSENT, ABSENT]
    assert values(table, table, (1, ABSENT, ABSENT, ABSENT, 4)) == [1, ABSENT, ABSENT, ABSENT, 4]
    assert values(table, table, (1, 5, 11, 2, 3)) == [1, 5, 11, 2, 3]


def test_which_columns_images_tell_is_known_without_their_values() -> None:
    old = version(ID, column(2, "a"), column(3, "g", expression="a+1"))
    new = version(ID, column(2, "a"), column(3, "g", expression="a+1"), column(4, "u", first_value="?"), since=place(5))
    origins = shapes.version_shape("db.t", new).origins(schema_of(old), old)

    assert [origin.is_told(0b011) for origin in origins] == [True, True, True, False]
    assert [origin.is_told(0b101) for origin in origins] == [True, False, True, False]
    assert [origin.is_told(0b001) for origin in origins] == [True, False, False, False]


def test_as_written_columns_are_those_of_all_versions_by_name() -> None:
    old = version(ID, column(2, "a"))
    new = version(column(1, "id", BIGINT), column(3, "b", TEXT), since=place(5))
    shape = shapes.united(
        shapes.version_shape("db.t", new, shapes.SchemaMode.AS_WRITTEN), [shapes.version_shape("db.t", old)]
    )

    assert [(one.name, one.type) for one in shape.columns] == [("id", 8), ("b", 15), ("a", 3)]
    assert [origin.value((1, 2)) for origin in shape.origins(schema_of(old), old)] == [1, None, 2]


def test_without_versions_columns_are_the_same_by_name() -> None:
    shape = shapes.TableShape(schema=named_by_event({"a": "int", "b": "int"}))

    origins = shape.origins(named_by_event({"b": "int", "c": "int"}), None)

    assert [origin.value((7, 8)) for origin in origins] == [ABSENT, 7]  # `c` may be what is called `a` now
    assert [origin.is_told(0b11) for origin in origins] == [False, True]


def typed(declared):
    return column(1, "c", type_of(declared))


WIDER = Path(__file__).with_name("wider_types.txt").read_text().splitlines()


@pytest.mark.parametrize("pair", WIDER)
def test_a_wider_column_keeps_every_value(pair) -> None:
    old, new = map(typed, pair.split(" -> "))
    assert shapes.has_every_value(column_of(old), column_of(new))
    assert shapes.keeps_values(old.type, new.type)
    assert not shapes.keeps_values(new.type, old.type) or old.type.is_zerofill


def test_a_column_that_may_change_values_does_not_keep_them() -> None:
    null, filled = version(column(1, "c", INT)), version(column(1, "c", INT, is_nullable=False))
    assert shapes.changed_columns(filled, null) == set()
    assert shapes.changed_columns(null, filled) == {1}
    texts = typed("varchar(5)"), typed("char(5)")
    assert shapes.changed_columns(version(texts[0]), version(texts[1])) == {1}


def test_a_generated_column_changes_with_its_expression_and_what_that_takes() -> None:
    old = version(ID, column(2, "a"), column(3, "g", expression="a + 1"), column(4, "h", expression="id"))
    renamed = version(ID, column(2, "b"), column(3, "g", expression="`b` + 1"), column(4, "h", expression="id"))
    wider = version(ID, column(2, "a", BIGINT), *old.columns[2:])
    other = version(ID, column(2, "a"), column(3, "g", expression="a + 2"), column(4, "h", expression="id"))

    assert shapes.changed_columns(old, renamed) == set()
    assert shapes.changed_columns(old, wider) == {3}
    assert shapes.changed_columns(old, other) == {3}


def test_a_set_lists_its_labels_in_the_new_order() -> None:
    old, new = typed("set('a','b')"), typed("set('b','a','c')")
    convert = shapes.widening(column_of(old), column_of(new))

    assert (convert("a,b"), convert("a"), convert("")) == ("b,a", "a", "")


KEPT_TYPES = [line.split("\t") for line in Path(__file__).with_name("kept_types.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("old", "new", "is_kept"), KEPT_TYPES)
def test_only_changes_that_keep_every_value_are_trusted(old, new, is_kept) -> None:
    assert shapes.keeps_values(type_of(old), type_of(new)) is (is_kept == "yes")
    assert shapes.keeps_values(type_of(old), type_of(old))
    assert not shapes.keeps_values(SqlType(word="unheard"), SqlType(word="of"))
