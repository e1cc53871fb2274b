import pytest
from lanes.replay import CLASSIC, raw_events

from ibbmaster.errors import EventError
from ibbmaster.replication.event.rows.column import ColumnType, ValueKind
from ibbmaster.replication.event.rows.table_schema import MetadataField, decode_table_schema
from ibbmaster.replication.event.types import EventType
from tests.damage import flipped
from tests.replication.event.conftest import event_of

HEAD = bytes.fromhex("070000000000 0100 01 64 00 01 74 00")
# id INT, name VARCHAR(40), mood ENUM, moods SET, place GEOMETRY, price DECIMAL(10,2)
TYPES = bytes([ColumnType.LONG, ColumnType.VARCHAR, ColumnType.STRING, ColumnType.STRING, ColumnType.GEOMETRY, 246])
METADATA = bytes.fromhex("2800 f701 f801 04 0a02")
PLAIN = HEAD + bytes([len(TYPES)]) + TYPES + bytes([len(METADATA)]) + METADATA + b"\x3e"


def field(code: int, data: bytes) -> bytes:
    return bytes([code, len(data)]) + data


def names(*texts: bytes) -> bytes:
    return b"".join(bytes([len(text)]) + text for text in texts)


FIELDS = (
    field(MetadataField.SIGNEDNESS, b"\x80")
    + field(MetadataField.COLUMN_CHARSET, b"\x2d\x3f")
    + field(MetadataField.COLUMN_NAME, names(b"id", b"name", b"mood", b"moods", b"place", b"price"))
    + field(MetadataField.ENUM_AND_SET_DEFAULT_CHARSET, b"\x08")
    + field(MetadataField.ENUM_STR_VALUE, b"\2" + names(b"gut", b"m\xfcde"))
    + field(MetadataField.SET_STR_VALUE, b"\1" + names(b"x"))
    + field(MetadataField.GEOMETRY_TYPE, b"\1")
    + field(MetadataField.SIMPLE_PRIMARY_KEY, b"\0")
)


def schema_of(body: bytes):
    return decode_table_schema(event_of(EventType.TABLE_MAP, body))


def test_without_optional_fields_columns_have_types_and_numbers_for_names():
    schema = schema_of(PLAIN)

    assert (schema.name, schema.table_id, schema.has_names, schema.primary_key) == ("d.t", 7, False, ())
    assert [column.name for column in schema.columns] == ["@1", "@2", "@3", "@4", "@5", "@6"]
    assert [column.type_name.partition("(")[0] for column in schema.columns] == [
        *("LONG", "VARCHAR", "ENUM", "SET", "GEOMETRY", "NEWDECIMAL")
    ]
    assert [column.is_nullable for column in schema.columns] == [False, True, True, True, True, True]
    expected = [(0, 0), (40, 0), (1, 0), (1, 0), (4, 0), (10, 2)]
    assert [(column.size, column.scale) for column in schema.columns] == expected


def test_each_optional_field_is_in_the_schema():
    schema = schema_of(PLAIN + FIELDS)
    by_name = {column.name: column for column in schema.columns}

    assert (schema.has_names, schema.primary_key) == (True, (0,))
    assert (by_name["id"].is_unsigned, by_name["price"].is_unsigned, by_name["name"].is_unsigned) == (True, False, None)
    assert (by_name["name"].kind, by_name["name"].charset) == (ValueKind.TEXT, "utf8mb4")
    assert (by_name["mood"].labels, by_name["moods"].labels) == (("gut", "müde"), ("x",))
    assert by_name["place"].geometry_type == 1
    assert by_name["place"].charset == "binary"


def test_labels_before_their_character_set_are_read_with_it():
    after = field(MetadataField.ENUM_STR_VALUE, b"\1" + names("mü".encode())) + field(
        MetadataField.ENUM_AND_SET_COLUMN_CHARSET, b"\x2d\x2d"
    )
    assert schema_of(PLAIN + after).columns[2].labels == ("mü",)


def test_a_default_collation_is_that_of_all_columns_but_the_listed():
    schema = schema_of(PLAIN + field(MetadataField.DEFAULT_CHARSET, b"\x2d\x01\x08"))
    assert (schema.columns[1].charset, schema.columns[4].charset) == ("utf8mb4", "latin1")


def test_a_key_may_be_of_a_prefix_and_an_unknown_field_is_passed_over_as_replicas_do():
    assert schema_of(PLAIN + field(MetadataField.PRIMARY_KEY_WITH_PREFIX, b"\1\x0a\0\0")).primary_key == (1, 0)
    assert schema_of(PLAIN + field(99, b"from a later server") + FIELDS) == schema_of(PLAIN + FIELDS)


def test_an_event_that_ends_inside_a_part_is_refused():
    whole = PLAIN + FIELDS
    ends = {len(PLAIN)}
    while max(ends) < len(whole):
        ends.add(max(ends) + 2 + whole[max(ends) + 1])
    for size in range(len(whole)):
        if size in ends:
            schema_of(whole[:size])
        else:
            with pytest.raises(EventError, match="TABLE_MAP"):
                schema_of(whole[:size])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (PLAIN.replace(b"\x09" + METADATA, b"\x0a" + METADATA + b"x"), "1 bytes of metadata more than its columns"),
        (PLAIN + field(MetadataField.DEFAULT_CHARSET, b"\x2d\x02\x08"), "a collation to text column 2, it has 2"),
        (PLAIN + field(MetadataField.COLUMN_CHARSET, b"\x2d\x2d\x2d"), "1 bytes behind its collations"),
        (PLAIN + field(MetadataField.COLUMN_NAME, names(*[b"a"] * 7)), "2 bytes behind its column names"),
        (PLAIN + field(MetadataField.ENUM_STR_VALUE, b"\x09\1a"), "TABLE_MAP has 9 labels in 2 bytes"),
        (PLAIN + field(MetadataField.ENUM_STR_VALUE, b"\1\1ab"), "1 bytes behind its labels"),
        (PLAIN + field(MetadataField.SIMPLE_PRIMARY_KEY, b"\6"), "column 6 in its key, but 6 columns"),
        (HEAD + b"\xfc\x01\x10" + b"\x03" * 4097, "a table with 4097 columns, at most 4096"),
    ],
)
def test_what_contradicts_itself_is_refused(body, problem):
    with pytest.raises(EventError, match=problem):
        schema_of(body)


@pytest.mark.parametrize(
    ("collation", "labels"),
    [(45, ("ab", "é", "cde")), (35, ("慢", "쎩", "捤?")), (54, ("慢", "쎩", "捤?")), (60, ("??", "??", "???"))],
    ids=["utf8mb4", "ucs2", "utf16", "utf32"],
)
def test_labels_whose_bytes_convert_to_left_alone_read_as_on_the_server(collation, labels):
    """Bytes and labels are those of MariaDB 10.11 and 11.8: ENUM('ab','é','cde') of utf8mb4, converted."""
    charset = field(MetadataField.ENUM_AND_SET_DEFAULT_CHARSET, bytes((collation,)))
    written = field(MetadataField.ENUM_STR_VALUE, b"\3\2ab\2\xc3\xa9\3cde")
    schema = schema_of(PLAIN + charset + written)
    assert [column.labels for column in schema.columns if column.type == ColumnType.ENUM] == [labels]


def test_damage_gives_a_schema_or_an_event_error():
    events = [event for event in raw_events(CLASSIC / "11.8/types-full-crc32") if event[4] == EventType.TABLE_MAP]
    refused = 0
    for event in events[:25]:
        for damaged in flipped(event, 19, 13):
            try:
                decode_table_schema(damaged)
            except EventError:
                refused += 1
    assert refused


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ({"u": 252, "DB_ROW_HASH_1": 8}, ["u"]),
        ({"u": 252, "DB_ROW_HASH_2": 8, "DB_ROW_HASH_3": 8}, ["u"]),
        ({"DB_ROW_HASH_1": 8, "u": 252}, ["DB_ROW_HASH_1", "u"]),  # not behind the others
        ({"u": 252, "DB_ROW_HASH_1": 3}, ["u", "DB_ROW_HASH_1"]),  # no BIGINT
        ({"u": 252, "DB_ROW_HASH_x": 8}, ["u", "DB_ROW_HASH_x"]),
        ({"DB_ROW_HASH_1": 8}, ["DB_ROW_HASH_1"]),  # a table has a column of its own
    ],
)
def test_the_hash_of_an_index_is_not_among_the_columns_that_are_shown(columns, shown):
    """As 11.8 logs them with binlog_row_metadata=FULL."""
    texts = b"\2" * list(columns.values()).count(ColumnType.BLOB)
    types = bytes([len(columns), *columns.values(), len(texts)]) + texts + b"\xff"

    schema = schema_of(HEAD + types + field(MetadataField.COLUMN_NAME, names(*map(str.encode, columns))))

    assert [column.name for column in schema.shown.columns] == shown
    assert list(columns) == [column.name for column in schema.columns]
