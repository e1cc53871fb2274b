import random
from decimal import Decimal

import pytest

from ibbmaster.errors import EventError
from ibbmaster.rows.expr.stored_values import stored_value
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayouts, own_columns, sort_key


def columns(*kinds: SqlType) -> list[StoredColumn]:
    made = tuple(TableColumn(id=number, name=f"c{number}", type=kind) for number, kind in enumerate(kinds))
    return own_columns(TableVersion(database="d", name="t", columns=made))


TEXT = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
ORDERED = [
    (SqlType(word="int"), sorted(random.Random(1).sample(range(-(2**31), 2**31), 50))),
    (SqlType(word="bigint", is_unsigned=True), [0, 1, 255, 256, 2**63, 2**64 - 1]),
    (SqlType(word="decimal", length=20, scale=5), [Decimal("-9999.5"), Decimal("-0.00001"), 0, Decimal("0.1"), 12345]),
    (SqlType(word="double"), [-1e300, -1.5, -1e-300, 0.0, 1e-300, 2.5, 1e300]),
    (SqlType(word="float"), [-2.5, -0.5, 0.0, 0.25, 1024.0]),
    (SqlType(word="date"), ["0000-00-00", "1000-01-01", "2020-02-29", "9999-12-31"]),
    (SqlType(word="datetime", scale=6), ["1000-01-01 00:00:00", "2020-01-01 00:00:00.000001", "2020-01-01 00:00:01"]),
    (SqlType(word="time", scale=2), ["-838:59:59.99", "-00:00:00.50", "00:00:00", "00:00:00.01", "838:59:59"]),
    (SqlType(word="varchar", length=9, **TEXT), ["", "a", "a\0", "a\0b", "ab", "b", "é", "中"]),
    (SqlType(word="varbinary", length=9), [b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"\xff\xff"]),
]


@pytest.mark.parametrize(("kind", "values"), ORDERED, ids=[kind.word for kind, _ in ORDERED])
@pytest.mark.parametrize("is_descending", [False, True])
def test_keys_compare_as_their_values_do_whatever_follows(kind: SqlType, values: list, is_descending: bool) -> None:
    (column,) = columns(kind)
    make = sort_key(column, is_descending=is_descending)

    keys = [make(stored_value(column.column, kind, value) or b"") for value in values]

    expected = keys[::-1] if is_descending else keys
    assert sorted(keys) == expected
    assert len(set(keys)) == len(values)
    tails = [bytes(random.choices([0, 255], k=3)) for _ in keys]
    assert sorted(key + tail for key, tail in zip(expected, tails, strict=True)) == [
        key + tail for key, tail in zip(expected, tails, strict=True)
    ]


def test_an_image_has_the_values_it_was_made_of() -> None:
    layout = StoredLayouts().add(columns(*(kind for kind, _ in ORDERED)))
    for _ in range(50):
        values = [
            None if random.random() < 0.2 else stored_value(one.column, one.type, random.choice(known))
            for one, (_, known) in zip(layout.columns, ORDERED, strict=True)
        ]
        image, spans = layout.row(values)
        assert layout.values(image) == values
        assert layout.spans(b"junk" + image, 4)[1] == 4 + len(image)
        assert [span is None for span in spans] == [value is None for value in values]


def test_an_image_that_ends_too_early_is_an_error() -> None:
    layout = StoredLayouts().add(columns(SqlType(word="int"), SqlType(word="varchar", length=9, **TEXT)))
    image, _ = layout.row([b"\1\0\0\0", b"abc"])

    with pytest.raises(EventError, match="a row of 9 bytes, of which 8 are there"):
        layout.spans(image[:-1])


def test_the_same_columns_are_one_layout() -> None:
    layouts = StoredLayouts()
    made = columns(SqlType(word="int"))

    assert layouts.add(made) is layouts.add(list(made))
    assert layouts.add(columns(SqlType(word="bigint"))).number == 1
    assert len(layouts) == 2
