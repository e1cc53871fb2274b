"""The kernel that writes rows: the same bytes as the reference; as a real server, see `test_scanning`."""

import random
from array import array
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from lanes.answers import SESSIONS

from ibbmaster.kernel import loading
from ibbmaster.primary.select.fast_rows import FastWriter
from ibbmaster.primary.select.row_values import RowValues, ShownColumn, Writer
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.replication.wire.response import ColumnDefinition
from ibbmaster.schema.model import SqlType, TableColumn
from ibbmaster.tables.fold.kept_rows import RowFile
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayouts


@pytest.fixture
def kernels() -> object:
    found = loading.load()
    if found is None:
        pytest.skip("no kernels here")
    return found


def shown_as(one: StoredColumn, column_type: int = 252, kind: SqlType | None = None) -> ShownColumn:
    name = one.column.name
    table_column = TableColumn(id=one.id, name=name, type=kind or one.type)
    return ShownColumn(ColumnDefinition(name=name, column_type=column_type, length=0), table_column, one)


def written_by_both(rows: RowFile, places: Iterable[int], given: RowValues, kernels: Any, sequence: int = 0) -> list:
    """The bytes that the reference writes, and the kernel, and the number of the packet behind them."""
    found = []
    for kind in (Writer, partial(FastWriter, kernels=kernels)):
        writer, out, number = kind(rows.data(), array("q", places), given), b"", sequence
        while (block := writer.write(number)) is not None:
            out, number = out + bytes(block[0]), block[1]
        found.append((out, number))
    return found


FIXED = {
    ColumnType.LONGLONG: 8,
    ColumnType.NEWDECIMAL: 14,
    ColumnType.DATETIME2: 8,
    ColumnType.TIME2: 5,
    ColumnType.TIMESTAMP2: 6,
    ColumnType.DATE: 3,
    ColumnType.DOUBLE: 8,
}


def column(number: int, kind: SqlType, stored: ColumnType, size: int, scale: int, meaning: ValueKind) -> StoredColumn:
    made = Column(
        name=f"c{number}", type=stored, metadata=0, kind=meaning, size=size, scale=scale,
        is_unsigned=kind.is_unsigned, charset=kind.charset or "binary",
    )  # fmt: skip
    fixed = FIXED.get(stored)
    return StoredColumn(number, made, kind, fixed, 0 if fixed is not None else 3)


COLUMNS = (
    column(1, SqlType(word="bigint"), ColumnType.LONGLONG, 0, 0, ValueKind.INTEGER),
    column(
        2, SqlType(word="bigint", length=20, is_unsigned=True, is_zerofill=True), ColumnType.LONGLONG, 0, 0,
        ValueKind.INTEGER,
    ),
    column(3, SqlType(word="decimal", length=30, scale=10), ColumnType.NEWDECIMAL, 30, 10, ValueKind.DECIMAL),
    column(4, SqlType(word="datetime", scale=6), ColumnType.DATETIME2, 0, 6, ValueKind.DATETIME),
    column(5, SqlType(word="time", scale=4), ColumnType.TIME2, 0, 3, ValueKind.TIME),
    column(6, SqlType(word="timestamp", scale=3), ColumnType.TIMESTAMP2, 0, 3, ValueKind.TIMESTAMP),
    column(7, SqlType(word="date"), ColumnType.DATE, 0, 0, ValueKind.DATE),
    column(8, SqlType(word="double"), ColumnType.DOUBLE, 0, 0, ValueKind.FLOAT),
    column(9, SqlType(word="text", charset="latin1"), ColumnType.BLOB, 3, 0, ValueKind.TEXT),
    column(10, SqlType(word="text", charset="utf8mb4"), ColumnType.BLOB, 3, 0, ValueKind.TEXT),
    column(11, SqlType(word="text", charset="gbk"), ColumnType.BLOB, 3, 0, ValueKind.TEXT),
    column(
        12, SqlType(word="bigint", length=255, is_unsigned=True, is_zerofill=True), ColumnType.LONGLONG, 0, 0,
        ValueKind.INTEGER,
    ),
)  # fmt: skip


def random_value(rng: random.Random, one: StoredColumn) -> bytes | None:
    if rng.random() < 0.1:
        return None
    match one.column.type:
        case ColumnType.NEWDECIMAL:
            from ibbmaster.rows.expr.stored_values import stored_value

            digits = rng.choice([1, 9, 18, 30])
            number = rng.randint(-(10**digits) + 1, 10**digits - 1)
            sign, text = "-" if number < 0 else "", str(abs(number)).rjust(11, "0")
            return stored_value(one.column, one.type, f"{sign}{text[:-10]}.{text[-10:]}")
        case ColumnType.DATETIME2:
            packed = (rng.randrange(10000) * 13 + rng.randrange(13)) << 22 | rng.getrandbits(22)
            return (packed + (1 << 39)).to_bytes(5, "big") + rng.randrange(10**6).to_bytes(3, "big")
        case ColumnType.DATE:
            return (rng.randrange(10000) << 9 | rng.getrandbits(9)).to_bytes(3, "little")
        case ColumnType.TIME2:
            packed = rng.choice([-1, 1]) * (rng.randrange(1 << 20) << 16 | rng.randrange(10**4))
            return (packed + (0x800000 << 16)).to_bytes(5, "big")
        case ColumnType.TIMESTAMP2:
            return rng.choice([0, rng.getrandbits(32)]).to_bytes(4, "big") + rng.randrange(10**4).to_bytes(2, "big")
        case ColumnType.BLOB if one.type.charset == "gbk":
            return ("测试" * rng.choice([0, 1, 5000])).encode("gbk")
        case ColumnType.BLOB:
            text = "".join(
                rng.choices("aäß€ \0" if one.type.charset == "latin1" else "aä中😀", k=rng.choice([0, 3, 300]))
            )
            return text.encode("cp1252" if one.type.charset == "latin1" else "utf-8")
        case ColumnType.DOUBLE:
            import struct

            return struct.pack("<d", rng.choice([0.0, -1.5, rng.uniform(-1e20, 1e20), 10.0 ** rng.randint(-300, 300)]))
    assert one.fixed is not None
    return rng.getrandbits(8 * one.fixed).to_bytes(one.fixed, "little")


@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("number", range(len(SESSIONS)))
def test_random_rows_are_written_as_the_reference_writes_them(kernels, number: int, is_binary: bool) -> None:
    session = SESSIONS[number]
    layouts = StoredLayouts()
    layout = layouts.add(COLUMNS)
    rows = RowFile()
    places = []
    for _ in range(500):
        values = [random_value(random, one) for one in COLUMNS]  # type: ignore[arg-type]
        places += rows.append(layout.number, [layout.image(values)])
    shown = [shown_as(one, TYPES[one.type.word]) for one in COLUMNS]
    settings = TextSettings(session.charset, session.time_zone_s)
    given = RowValues(shown, layouts, settings, is_binary=is_binary, used=[layout.number])

    reference, kernel = written_by_both(rows, places, given, kernels, 250)
    assert reference == kernel


TYPES = {"bigint": 8, "decimal": 246, "datetime": 12, "time": 11, "timestamp": 7, "date": 10, "double": 5, "text": 252}


def test_a_row_of_16_mib_and_more_is_several_packets(kernels) -> None:
    layouts = StoredLayouts()
    layout = layouts.add(COLUMNS[9:10])
    rows = RowFile()
    places = rows.append(layout.number, [layout.image([b"x" * size]) for size in (5, (1 << 24) - 5, 7)])
    given = RowValues([shown_as(COLUMNS[9])], layouts, TextSettings("utf8mb4"), is_binary=False, used=[layout.number])

    _, (data, _) = written_by_both(rows, places, given, kernels)
    sizes, offset = [], 0
    while offset < len(data):
        size = int.from_bytes(data[offset : offset + 3], "little")
        assert data[offset + 3] == len(sizes)
        sizes.append(size)
        offset += 4 + size

    assert sizes == [6, (1 << 24) - 1, 0, 8]


CHANGED = {  # a column before and behind an ALTER, with a value of each; what it is shown as
    "no longer compressed": (
        SqlType(word="text", charset="utf8mb4"),
        ((ColumnType.BLOB_COMPRESSED, "utf8mb4", b"\0x"), (ColumnType.BLOB, "utf8mb4", b"y")),
        [b"\1x", b"\1y"],
    ),
    "from two bytes a letter": (
        SqlType(word="text", charset="utf8mb4"),
        ((ColumnType.BLOB, "ucs2", b"\0\xe9"), (ColumnType.BLOB, "utf8mb4", "é".encode())),
        [b"\2\xc3\xa9", b"\2\xc3\xa9"],
    ),
    "from a table of bytes": (
        SqlType(word="text", charset="cp932"),
        ((ColumnType.BLOB, "latin1", b"a"), (ColumnType.BLOB, "cp932", "日".encode("cp932"))),
        [b"\1a", b"\3\xe6\x97\xa5"],
    ),
    "the same bytes in two character sets": (
        SqlType(word="text", charset="utf8mb4"),
        ((ColumnType.BLOB, "ucs2", b"\x30\x42"), (ColumnType.BLOB, "utf16le", b"\x30\x42")),
        [b"\3\xe3\x81\x82", b"\3\xe4\x88\xb0"],
    ),
    "more bits": (
        SqlType(word="bit", length=12),
        ((ColumnType.BIT, None, b"\3"), (ColumnType.BIT, None, b"\4\3")),
        [b"\2\0\3", b"\2\4\3"],
    ),
}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("kind", "stored", "texts"), CHANGED.values(), ids=CHANGED)
def test_rows_from_before_and_behind_a_change_of_their_column_are_one_answer(
    kernels, kind: SqlType, stored: tuple[tuple[ColumnType, str | None, bytes], ...], texts: list[bytes], first: int
) -> None:
    layouts, rows, places = StoredLayouts(), RowFile(), []
    for type_code, charset, value in stored:
        meaning = ValueKind.BIT if charset is None else ValueKind.TEXT
        length = 8 * len(value) if charset is None else 3
        made = column(
            1, replace(kind, length=length if charset is None else None, charset=charset), type_code, length, 0, meaning
        )
        size = len(value) if charset is None else None
        layout = layouts.add([replace(made, fixed=size, prefix=0 if size else 3)])
        places += rows.append(layout.number, [layout.image([value])])
    given = RowValues(
        [shown_as(made, kind=kind)], layouts, TextSettings("utf8mb4"), is_binary=False, used=range(len(layouts))
    )

    wanted = texts[first:] + texts[:first]
    written = b"".join(bytes([len(one), 0, 0, number]) + one for number, one in enumerate(wanted))
    assert written_by_both(rows, places[first:] + places[:first], given, kernels) == [(written, len(wanted))] * 2


def test_texts_that_no_character_set_is_asked_for_come_in_that_of_the_column_as_it_is_now(kernels) -> None:
    kind = SqlType(word="text", charset="utf8mb4")
    layouts, rows = StoredLayouts(), RowFile()
    layout = layouts.add([column(1, replace(kind, charset="latin1"), ColumnType.BLOB, 3, 0, ValueKind.TEXT)])
    places = rows.append(layout.number, [layout.image([b"\xe9"])])
    shown = shown_as(layout.columns[0], kind=kind)

    for wanted in (None, "binary"):
        given = RowValues([shown], layouts, TextSettings(wanted), is_binary=False, used=[layout.number])
        assert written_by_both(rows, places, given, kernels) == [(b"\3\0\0\0\2\xc3\xa9", 1)] * 2
