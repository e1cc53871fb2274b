import dataclasses
import datetime
import random
import re
from decimal import Decimal

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.column_types.kind import StoredText
from ibbmaster.replication.event.rows.changes import ABSENT, ChangeKind, RowDecoder
from ibbmaster.replication.event.rows.column import ColumnType
from ibbmaster.replication.event.rows.encoding import (
    RowImage,
    RowMetadata,
    WrittenTable,
    encode_rows,
    image_columns,
    written_column,
    written_table,
)
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.schema.declarations import parse_declarations
from tests.case_table import data_beside
from tests.replication.event.conftest import schema_of

DATA = data_beside(__file__)

COLUMNS = DATA["columns"]


def random_row(rng: random.Random, number: int) -> list[object]:
    def text(size: int) -> str:
        return "".join(rng.choice("aZ9 é漢😀") for _ in range(rng.randrange(size))) + "x"

    moment = datetime.datetime(1971, 1, 1) + datetime.timedelta(
        days=rng.randrange(40_000), microseconds=rng.randrange(86_400_000_000)
    )
    row: list[object] = [
        number,
        rng.randrange(256),
        rng.randrange(-(2**15), 2**15),
        rng.randrange(-(2**23), 2**23),
        rng.randrange(2**32),
        rng.randrange(2**64),
        rng.randrange(1000) / 8,
        rng.random(),
        Decimal(rng.randrange(-(10**30) + 1, 10**30)).scaleb(-10),
        Decimal(rng.randrange(-(10**10) + 1, 10**10)).scaleb(-2),
        text(49),
        text(299),
        text(69),
        rng.randbytes(rng.randrange(20)),
        b"ab\0c\0",
        text(1000),
        rng.randbytes(rng.randrange(70_000)),
        moment.date(),
        moment,
        moment.replace(microsecond=moment.microsecond // 100_000 * 100_000),
        moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        f"{rng.choice(['', '-'])}{rng.randrange(839):02}:59:07.25",
        rng.choice([0, 1901, 2155]),
        rng.randrange(2),
    ]
    return [None if number and rng.random() < 0.2 else value for number, value in enumerate(row)]


def shown(value: object, digits: int | None) -> object:
    """A value as the decoder gives it."""
    if isinstance(value, datetime.datetime):
        fraction = f".{value.microsecond:06}"[: 1 + digits] if digits else ""
        return f"{value:%Y-%m-%d %H:%M:%S}{fraction}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def test_rows_of_every_type_read_back_as_they_were_given():
    rng = random.Random(random.randrange(2**32))
    table = written_table("db.t", COLUMNS, table_id=7, primary_key=["id"])
    schema = schema_of(table)
    assert (schema.name, schema.primary_key, schema.has_names) == ("db.t", (0,), True)
    assert [column.name for column in schema.columns] == list(COLUMNS)
    assert [column.is_nullable for column in schema.columns] == [False] + [True] * (len(COLUMNS) - 1)
    rows = [random_row(rng, number) for number in range(200)]
    decoder = RowDecoder(schema)
    digits = [column.scale for column in schema.columns]
    given = [tuple(map(shown, row, digits)) for row in rows]
    images, nothing = [table.image(row) for row in rows], [None] * len(rows)
    for kind, before, after, expected in (
        (ChangeKind.INSERT, nothing, images, [nothing, given]),
        (ChangeKind.DELETE, images, nothing, [given, nothing]),
        (ChangeKind.UPDATE, images, images[::-1], [given, given[::-1]]),
    ):
        events = list(encode_rows(table, kind, list(zip(before, after, strict=True)), server_id=1))
        assert len(events) > 1
        found = [change for event in events for change in decoder.changes(event)]
        assert [[change.before for change in found], [change.after for change in found]] == expected


def test_text_is_taken_as_values_of_any_type():
    table = written_table("db.t", {"n": "int", "d": "decimal(5,2)", "b": "blob", "m": "datetime(6)"}, table_id=1)
    values = read_again(table, ["-5", "1.50", "0x00ff", "2024-02-29 01:02:03.5"])
    assert values == (-5, Decimal("1.50"), b"\0\xff", "2024-02-29 01:02:03.500000")


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        ("tinyint", 128, "does not fit into 1 bytes"),
        ("int not null", None, "NULL"),
        ("tinyblob", bytes(256), "256 bytes, at most 255"),
        ("date", "2023-02-29", "no such day"),
        ("datetime", "yesterday", "no date and time"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_column(declared, value, problem):
    table = written_table("db.t", {"a": "int", "b": declared}, table_id=1)
    with pytest.raises(ValueError, match=f"db.t column b .*{problem}"):
        table.image([1, value])


@pytest.mark.parametrize(
    ("name", "columns", "key"),
    [("t", {"a": "int"}, ()), ("db.", {"a": "int"}, ()), ("db.t", {}, ()), ("db.t", {"a": "int"}, ("b",))],
)
def test_tables_that_cannot_be_are_refused(name, columns, key):
    with pytest.raises(ConfigurationError):
        written_table(name, columns, table_id=1, primary_key=key)


def read_again(table, row):
    (event,) = encode_rows(table, ChangeKind.INSERT, [(None, table.image(row))], server_id=1)
    (change,) = RowDecoder(schema_of(table)).changes(event)
    return change.after


def test_zerofill_columns_are_written_without_a_sign():
    table = written_table("db.t", {"a": "int(7) zerofill", "b": "decimal(5,2) zerofill", "c": "int"}, table_id=1)
    assert [column.is_unsigned for column in schema_of(table).columns] == [True, True, False]
    assert read_again(table, [4_000_000_000, "1.5", -1]) == (4_000_000_000, Decimal("1.50"), -1)


@pytest.mark.parametrize("declared", ["int primary key", "int not null KEY"])
def test_a_key_is_declared_once_whatever_comments_mention(declared):
    table = written_table("db.t", {"a": "int comment 'primary key'", "b": declared}, table_id=1)

    assert table.primary_key == (1,)
    assert f"`db`.`t` (`a` int comment 'primary key', `b` {declared}) " in table.statements[1]
    statement = keyed("a", a="int comment 'primary key'").statements[1]
    assert "`db`.`t` (`a` int comment 'primary key' NOT NULL, PRIMARY KEY (`a`)) " in statement


INTEGERS = {"int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint"}
INTEGERS |= {"int4": "int", "int8": "bigint"}


@pytest.mark.parametrize(("synonym", "word"), INTEGERS.items())
def test_integers_are_written_by_their_other_names_too(synonym, word):
    found, expected = written_column("a", f"{synonym} unsigned"), written_column("a", f"{word} unsigned")

    assert (found.type, found.is_unsigned, found.encode(200)) == (expected.type, True, expected.encode(200))


@pytest.mark.parametrize("word", ["varchar(9)", "char(9)", "text", "longtext"])
@pytest.mark.parametrize(("named", "charset"), DATA["other_charsets"])
def test_text_of_another_character_set_is_refused_as_replicas_would_store_it_wrong(word, named, charset):
    with pytest.raises(ConfigurationError, match=rf"^column a: .* is text in {charset}, only utf8mb4 can be written$"):
        written_column("a", f"{word} {named}")


@pytest.mark.parametrize("options", ["CHARSET latin1", "DEFAULT CHARSET=utf8mb3", "COLLATE=latin1_bin"])
def test_a_table_of_another_character_set_is_refused(options):
    ((_, columns),) = parse_declarations(f"CREATE TABLE a.b (id int, word text) {options}")
    with pytest.raises(ConfigurationError, match=r"column word: .* only utf8mb4 can be written"):
        written_table("a.b", columns, table_id=1)


def test_a_table_of_utf8mb4_is_written_as_it_was_declared():
    ((_, columns),) = parse_declarations("CREATE TABLE a.b (word text COMMENT 'x') DEFAULT CHARSET=utf8mb4")
    assert "(`word` text COMMENT 'x') " in written_table("a.b", columns, table_id=1).statements[1]


def test_columns_that_are_declared_compressed_are_written_so():
    given = {"a": "varchar(300) COMPRESSED", "b": "text /*M!100301 COMPRESSED*/ NOT NULL", "c": "int"}
    table = written_table("a.b", given, table_id=1)
    row = ["x" * 300, "y" * 9000, 1]

    assert read_again(table, row) == tuple(row)
    assert len(table.image(row)) < 100


def keyed(*key, **columns):
    return written_table("db.t", columns, table_id=1, primary_key=key)


def test_columns_of_the_key_are_not_null_and_others_may_be():
    table = keyed("a", "c", a="int", b="int", c="varchar(9) COMMENT 'null'")
    schema = schema_of(table)

    assert [column.is_nullable for column in schema.columns] == [False, True, False]
    assert schema.primary_key == (0, 2)
    assert table.statements[1].startswith(
        "CREATE TABLE IF NOT EXISTS `db`.`t` "
        "(`a` int NOT NULL, `b` int, `c` varchar(9) COMMENT 'null' NOT NULL, PRIMARY KEY (`a`, `c`)) "
    )


@pytest.mark.parametrize("declared", ["int not null", "int NOT  NULL DEFAULT 0", "int primary key"])
def test_a_column_that_is_not_null_already_stays_as_it_is(declared):
    assert keyed("a", a=declared).columns[0].declared == declared


@pytest.mark.parametrize(
    "declared", ["int CHECK (a > 0)", "int REFERENCES o (a)", "int DEFAULT NULL", "timestamp(6) NULL"]
)
def test_not_null_is_left_to_the_key_where_a_column_cannot_say_it(declared):
    table = keyed("a", a=declared, b="int")
    schema = schema_of(table)

    assert [column.is_nullable for column in schema.columns] == [False, True]
    assert f"(`a` {declared}, `b` int, PRIMARY KEY (`a`)) " in table.statements[1]


def test_a_null_in_the_key_is_an_error_that_names_the_column():
    for declared in ("int", "int CHECK (b > 0)"):
        table = keyed("a", "b", a="int", b=declared, c="int")
        table.image([1, 2, None])
        with pytest.raises(ValueError, match=r"^db\.t column b \(int.*\): NULL$"):
            table.image([1, None, 3])


def test_a_key_that_is_not_the_declared_one_is_refused():
    assert keyed("b", a="int", b="int primary key").primary_key == (1,)
    with pytest.raises(ConfigurationError, match=r"^db\.t declares b its key, not a$"):
        keyed("a", a="int", b="int primary key")


def test_a_key_of_more_columns_stands_behind_them():
    ((name, columns),) = parse_declarations(
        "CREATE TABLE d.t (a int, b int CHECK (b > 0), c int NULL, PRIMARY KEY (c, b, a))"
    )
    table = written_table(name, columns, table_id=1)
    assert table.primary_key == (0, 1, 2)
    assert "(`a` int NOT NULL, `b` int CHECK (b > 0), `c` int NULL, PRIMARY KEY (`a`, `b`, `c`))" in table.statements[1]


EVERY_SORT = {
    "id": "int",
    "e": "enum('a','ü')",
    "s": "set('x','y')",
    "n": "int unsigned",
    "t": "varchar(9)",
    "b": "blob",
}


@pytest.mark.parametrize("metadata", RowMetadata)
def test_a_table_map_tells_as_much_as_asked_for(metadata):
    table = written_table("db.t", EVERY_SORT, table_id=1, primary_key=["id"])

    schema = schema_of(table, metadata=metadata)

    is_full, has_signs = metadata is RowMetadata.FULL, metadata is not RowMetadata.NO_LOG
    assert [column.name for column in schema.columns] == list(EVERY_SORT) if is_full else schema.columns[5].name == "@6"
    assert schema.columns[3].is_unsigned == (True if has_signs else None)
    assert schema.columns[4].charset == ("utf8mb4" if has_signs else None)
    assert [column.labels for column in schema.columns[1:3]] == ([("a", "ü"), ("x", "y")] if is_full else [None, None])
    assert schema.primary_key == ((0,) if is_full else ())


@pytest.mark.parametrize("is_compressed", [False, True])
def test_images_may_leave_columns_out(is_compressed):
    table = written_table("db.t", EVERY_SORT, table_id=1, primary_key=["id"])
    decoder = RowDecoder(schema_of(table))
    before, after = [7, "a", "x,y", 5, None, b"z"], [7, "a", "", None, "new", b"z"]
    columns = (0,), (2, 3, 4)
    images = [(table.image(before, columns[0]), table.image(after, columns[1]))]
    (event,) = encode_rows(table, UPDATE, images, server_id=1, columns=columns, is_compressed=is_compressed)
    (change,) = decoder.changes(event)
    assert decode_rows_header(event).is_compressed == is_compressed
    assert change.before == (7, *5 * [ABSENT])
    assert change.after == (ABSENT, ABSENT, "", None, "new", ABSENT)


def test_a_row_with_another_number_of_values_is_refused():
    table = written_table("db.t", EVERY_SORT, table_id=1)
    with pytest.raises(ValueError, match="has 6 columns, and the row 2 values"):
        table.image([1, "a"])


@pytest.mark.parametrize(
    ("declared", "column_type", "metadata", "is_unsigned", "collation"),
    DATA["described"],  # char(70) has 280 bytes: bits 8 and 9 are inverted in the type
)
def test_a_type_is_described_as_a_table_map_has_it(declared, column_type, metadata, is_unsigned, collation):
    column = written_column("a", declared)

    assert (column.type, column.metadata) == (ColumnType[column_type], bytes.fromhex(metadata))
    assert (column.is_unsigned, column.collation) == (is_unsigned, collation)
    assert (column.declared, column.is_nullable) == (declared.strip(), True)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("serial", "columns of type 'serial' cannot be written"),
        ("xmltype", "columns of type 'xmltype' cannot be written"),
        ("bit(65)", "BIT(65) does not exist"),
        *((text, "is no column type") for text in ("", "()")),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_column(declared, problem):
    with pytest.raises(ConfigurationError, match=r"column a: .*" + re.escape(problem)):
        written_column("a", declared)


LATIN1, UTF32, ARMSCII8 = StoredText("latin1", 8, 1), StoredText("utf32", 60, 4), StoredText("armscii8", 32, 1)


@pytest.mark.parametrize(
    ("declared", "storage", "is_compressed", "column_type", "metadata", "encoded"),
    [  # as 11.8 has logged them
        ("varchar(20)", LATIN1, False, ColumnType.VARCHAR, "1400", "03 5af680"),
        ("char(5)", UTF32, False, ColumnType.STRING, "fe14", "0c 0000005a 000000f6 000020ac"),
        ("varchar(200)", None, True, ColumnType.VARCHAR_COMPRESSED, "2103", "0700 00 5ac3b6e282ac"),
        ("text", LATIN1, True, ColumnType.BLOB_COMPRESSED, "02", "0400 00 5af680"),
        ("enum('Zö€')", UTF32, False, ColumnType.STRING, "f701", "01"),
    ],
)
def test_text_is_stored_as_its_column_says(declared, storage, is_compressed, column_type, metadata, encoded):
    column = written_column("a", declared, storage=storage, is_compressed=is_compressed)

    assert (column.type, column.metadata) == (column_type, bytes.fromhex(metadata))
    assert column.encode("Zö€") == bytes.fromhex(encoded)


def test_a_long_value_of_a_compressed_column_is_packed_as_a_server_does_it():
    encode = written_column("a", "text", is_compressed=True).encode

    assert encode("x" * 300) == bytes.fromhex("0a00 8a012caba81805c40200")  # of 11.8
    assert encode("") == bytes.fromhex("0000")
    assert encode(bytes(range(256)))[:3] == bytes.fromhex("0101 00")  # packed it would be longer


def test_text_that_its_character_set_does_not_have_is_refused():
    encode = written_column("a", "varchar(5)", storage=LATIN1).encode

    assert encode("\x81") == b"\1\x81"
    with pytest.raises(ValueError, match="'Ж' is no text of character set latin1"):
        encode("Ж")
    with pytest.raises(ValueError, match="of 6 characters, at most 5"):
        written_column("a", "varchar(5)").encode("x" * 6)
    assert written_column("a", "varchar(5)", storage=ARMSCII8).encode("Ա") == b"\1\xb2"


@pytest.mark.parametrize(
    "declared", ["varchar(5) charset utf8mb4", "varchar(5) collate utf8mb4_bin", "text collate uca1400_ai_ci", "json"]
)
def test_utf8mb4_may_be_named(declared):
    assert written_column("a", declared).collation == 45


MIXED = {"id": "int", "a": "int", "b": "text", "c": "blob"}
KEYED = written_table("d.t", MIXED, table_id=1, primary_key=["id"])
KEYLESS = written_table("d.t", MIXED, table_id=1)
ALL = (0, 1, 2, 3)
UPDATE, INSERT = ChangeKind.UPDATE, ChangeKind.INSERT


@pytest.mark.parametrize(
    ("kind", "image", "given", "before", "after"),
    DATA["images"],
)
def test_a_change_has_the_columns_of_its_images(kind, image, given, before, after):
    found = image_columns(KEYED, RowImage[image], ChangeKind[kind], set(given))
    assert [one and list(two) for one, two in zip((before, after), found, strict=True)] == [before, after]


def test_the_images_of_a_table_without_a_key_have_every_column():
    for image in RowImage:
        assert image_columns(KEYLESS, image, UPDATE, {2}) == (ALL, ALL)
        assert image_columns(KEYLESS, image, INSERT, {2})[1] == ALL


def test_a_blob_of_the_key_is_in_every_image():
    table = dataclasses.replace(KEYED, primary_key=(2,), key_prefixes=(5,))
    assert image_columns(table, RowImage.NOBLOB, UPDATE, {1}) == ((0, 1, 2), (0, 1, 2))
    assert image_columns(table, RowImage.MINIMAL, UPDATE, {1}) == ((2,), (1,))


def test_a_compressed_blob_is_a_blob_and_a_geometry_is_none():
    columns = (written_column("z", "text", is_compressed=True), written_column("g", "point"))
    table = WrittenTable(table_id=1, database="d", table="t", columns=KEYED.columns[:1] + columns, primary_key=(0,))
    assert image_columns(table, RowImage.NOBLOB, INSERT, {0})[1] == (0, 2)
