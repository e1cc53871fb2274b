from dataclasses import replace
from decimal import Decimal

import pymysql
import pytest
from pymysqlreplication.row_event import WriteRowsEvent

import ibbmaster
from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.testkit import FixturePrimary, RowFormat, RowImage
from ibbmaster.testkit.tables import SequenceRow
from tests.column_sorts import NEWEST, SORTS
from tests.tap import ask, live_changes

PLAIN = {
    "small": ("tinyint default -3", -128),
    "ratio": ("double", 1.5),
    "name": ("varchar(40)", "Zoë"),
    "fixed": ("char(5)", "ab"),
    "body": ("text", "x" * 300),
    "raw": ("varbinary(9)", b"\x00\xff"),
    "data": ("blob", b"\x01" * 300),
    "day": ("date", "2026-02-03"),
    "moment": ("datetime(3)", "2026-02-03 04:05:06.789"),
    "stamp": ("timestamp(6) null", "2026-02-03 04:05:06.789012"),
    "span": ("time(2)", "-12:30:01.50"),
    "year": ("year", 2026),
    "sort": ("enum('a','b')", "b"),
    "tags": ("set('x','y','z')", "x,z"),
    "bits": ("bit(10)", 513),
}
AS_BYTES = ("uid", "address", "address4", "vector")  # TABLE_MAP calls these binary


def changes_in(primary):
    return [(change.kind, change.before, change.after) for group in primary.log.groups() for _, change in group.rows()]


def bodies(primary, kind):
    events = (event for group in primary.log.groups() for event in group.events() if event.type == kind)
    return [bytes(event.data)[19:] for event in events]


def test_the_table_has_what_its_log_says(ibb_primary, orders):
    orders.insert(id=1, total="9.90")
    orders.insert({"id": 2, "total": 3, "note": "two"}, {"note": "three", "total": None, "id": 3})
    orders.update(id=2, total=Decimal("4.5"))
    orders.update({"note": "three"}, id=30)
    orders.delete(id=1)
    assert orders.rows == [
        {"id": 2, "total": Decimal("4.50"), "note": "two"},
        {"id": 30, "total": None, "note": "three"},
    ]
    assert changes_in(ibb_primary) == [
        ("insert", None, {"id": 1, "total": Decimal("9.90"), "note": None}),
        ("insert", None, {"id": 2, "total": Decimal("3.00"), "note": "two"}),
        ("insert", None, {"id": 3, "total": None, "note": "three"}),
        (
            "update",
            {"id": 2, "total": Decimal("3.00"), "note": "two"},
            {"id": 2, "total": Decimal("4.50"), "note": "two"},
        ),
        ("update", {"id": 3, "total": None, "note": "three"}, {"id": 30, "total": None, "note": "three"}),
        ("delete", {"id": 1, "total": Decimal("9.90"), "note": None}, None),
    ]


def test_what_is_left_out_gets_its_default(ibb_primary):
    table = ibb_primary.table(
        "shop.d",
        id="int auto_increment primary key",
        n="int not null default 7",
        t="varchar(9) default 'it''s'",
        made="datetime(2) not null default current_timestamp(2) on update current_timestamp(2)",
    )
    table.insert(n=1)
    ibb_primary.clock.advance(61.25)
    table.insert(id=10)
    table.insert()
    table.update(id=1, t=None)
    table.update(id=1, t=None)  # nothing changes: a server logs nothing
    begin, later = "2026-01-01 00:00:00.00", "2026-01-01 00:01:01.25"
    assert [tuple(row.values()) for row in table.rows] == [
        (1, 1, None, later),
        (10, 7, "it's", later),
        (11, 7, "it's", later),
    ]
    assert changes_in(ibb_primary)[0][2]["made"] == begin
    assert len(changes_in(ibb_primary)) == 4


def test_a_row_is_found_by_values_or_any_unique_key_that_is_never_null(ibb_primary):
    pairs = ibb_primary.table("shop.pairs", a="int", b="varchar(5)")
    pairs.insert({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": "y"})
    pairs.update({"a": 1, "b": "y"}, a=2)
    pairs.delete({"a": 1})
    assert sorted(map(str, pairs.rows)) == ["{'a': 1, 'b': 'x'}", "{'a': 2, 'b': 'y'}"]
    table = ibb_primary.table("shop.u", a="int not null unique", b="int")
    table.insert(a=1, b=2)
    table.update(a=1, b=3)
    assert table.rows == [{"a": 1, "b": 3}]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: table.insert(id=1), "shop.orders: there is a row of the key id=1 already"),
        (lambda table: table.insert({"id": 7}, {"id": 7}), "shop.orders: there is a row of the key id=7 already"),
        (lambda table: table.insert(total=1), "shop.orders: column id has no default: give its value"),
        (lambda table: table.insert(id=None), "shop.orders column id (int(11) NOT NULL): NULL"),
        (lambda table: table.insert(ID=2, cost=1), "shop.orders has no column 'cost'; it has id, total, note"),
        (lambda table: table.insert({"id": 5}, total=1), "shop.orders: give rows, or the values of one row, not both"),
        (lambda table: table.insert({"id": 5}, {"id": 6, "note": "x"}), "shop.orders: the rows of one statement have"),
        (lambda table: table.insert(id=2, total="much"), "shop.orders column total (decimal(10,2)): 'much': "),
        (lambda table: table.update(id=9, total=1), "shop.orders has no row with id=9; it has 2 rows"),
        (lambda table: table.update(total=1), "shop.orders: id, of its key, is missing: which row is it?"),
        (lambda table: table.update({"id": 1}, id=3), "shop.orders: there is a row of the key id=3 already"),
        (lambda table: table.delete(id=1, note="other"), "shop.orders has no row with id=1, note='other'; it has 2"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_logged(ibb_primary, orders, change, problem):
    orders.insert({"id": 1}, {"id": 3})
    before, kept = ibb_primary.log.position, orders.rows
    with pytest.raises(ConfigurationError) as caught:
        change(orders)
    assert str(caught.value).startswith(problem)
    assert (ibb_primary.log.position, orders.rows) == (before, kept)


@pytest.mark.parametrize("sorts", [PLAIN, SORTS | NEWEST], ids=["plain", "others"])
def test_values_of_columns_of_every_sort_are_read_as_they_are_kept(ibb_primary, sorts):
    table = ibb_primary.table("shop.sorts", id="int primary key", **{name: sort for name, (sort, _) in sorts.items()})
    values = {name: value for name, (_, value) in sorts.items()}
    table.insert({"id": 1, **values}, {"id": 2, **dict.fromkeys(values)})
    assert table.rows == [{"id": 1, **values}, {"id": 2, **dict.fromkeys(values)}]
    (_, _, after), (_, _, nulls) = changes_in(ibb_primary)
    assert [(name, after[name]) for name in values if name not in AS_BYTES] == [
        (name, value) for name, value in values.items() if name not in AS_BYTES
    ]
    assert set(nulls.values()) == {2, None}


def test_a_table_map_has_the_collations_and_the_key_of_the_table(ibb_primary):
    ibb_primary.ddl(
        "CREATE TABLE s.t (a varchar(9) COLLATE utf8mb3_bin NOT NULL UNIQUE, b enum('x') CHARSET latin1, "
        "c text COLLATE utf8mb4_uca1400_ai_ci, d point)"
    )
    ibb_primary.ddl("CREATE TABLE s.u (a text, b int, PRIMARY KEY (a(5), b))")
    for name in ("s.t", "s.u"):
        ibb_primary.table(name).insert(a="abcdefgh", b="x" if name == "s.t" else 1)
    maps = bodies(ibb_primary, "TABLE_MAP")
    assert bytes.fromhex("0305 53 fc0009 3f") in maps[0]  # COLUMN_CHARSET: 83, 2304, 63
    assert bytes.fromhex("0a01 08") in maps[0]  # ENUM_AND_SET_DEFAULT_CHARSET
    assert bytes.fromhex("0701 01 04") in maps[0]  # GEOMETRY_TYPE, before the names
    assert maps[0].endswith(bytes.fromhex("0801 00"))  # the key is one without PRIMARY
    assert maps[1].endswith(bytes.fromhex("0904 0005 0100"))  # of the first column five characters


GENERATED = {
    "id": "int primary key",
    "a": "int",
    "b": "int default 5",
    "v": "int as (a+1) virtual",
    "s": "int as (a*2) stored",
    "x": "varchar(9) as (concat('n',a)) virtual",
    "y": "text as (repeat('z',a)) virtual",
    "k": "int as (b+1) virtual unique",
}


@pytest.mark.parametrize(
    ("image", "inserted", "updated"),
    [  # the columns that 11.8 logs of: INSERT (id, a), UPDATE SET a
        (RowImage.FULL, "idabvsxyk", "idabvsxyk"),
        (RowImage.MINIMAL, "idask", "ask"),
        (RowImage.NOBLOB, "idabvsxk", "idabvsxk"),
        (RowImage.FULL_NODUP, "idabvsxyk", "ask"),
    ],
)
def test_generated_columns_are_in_the_images_as_a_server_has_them(ibb_primary, image, inserted, updated):
    table = ibb_primary.table("shop.g", **GENERATED)
    ibb_primary.format = RowFormat(image=image)
    table.insert(id=1, a=2, y="zz")
    table.update(id=1, a=3, y="zzz")
    (_, _, first), (_, _, second) = changes_in(ibb_primary)
    assert ("".join(first), "".join(second)) == (inserted, updated)
    assert table.rows == [{"id": 1, "a": 3, "b": 5, "v": 4, "s": 6, "x": "n3", "y": "zzz", "k": 6}]
    assert (second["s"], second["k"]) == (6, 6)


@pytest.mark.parametrize(
    ("image", "before", "updated"),
    [
        (RowImage.FULL, "idab", "idab"),
        (RowImage.MINIMAL, "id", "a"),
        (RowImage.NOBLOB, "idab", "idab"),
        (RowImage.FULL_NODUP, "idab", "a"),
    ],
)
def test_images_of_updates_and_deletes_are_without_generated_columns_where_a_server_has_none(
    ibb_primary, image, before, updated
):
    table = ibb_primary.table("shop.g", **GENERATED)
    ibb_primary.format = RowFormat(image=image, has_generated=False)
    table.insert(id=1, a=2, y="zz")
    table.update(id=1, a=3, y="zzz")
    table.delete(id=1)
    (_, _, inserted), (_, was, became), (_, deleted, _) = changes_in(ibb_primary)
    assert set("vsk") & set(inserted)
    assert ("".join(was), "".join(became), "".join(deleted)) == (before, updated, before)


def test_what_a_generated_column_comes_to_is_asked_where_it_is_not_known(ibb_primary):
    table = ibb_primary.table("shop.g", **GENERATED)
    with pytest.raises(ConfigurationError, match=r"column y: what repeat.* comes to is not known here: give its value"):
        table.insert(id=1, a=2)
    table.insert(id=1, a=2, y=None)
    ibb_primary.ddl("ALTER TABLE shop.g ADD COLUMN late int AS (a * 10) STORED, DROP COLUMN y")
    ibb_primary.ddl("ALTER TABLE shop.g MODIFY s int AS (a * 3) STORED")
    assert (table.rows[0]["late"], table.rows[0]["s"]) == (20, 6)


def numbers_of(primary, options):
    primary.ddl(f"CREATE SEQUENCE shop.numbers {options}")
    return primary.table("shop.numbers")


def test_a_sequence_logs_its_row_as_often_as_a_server_reserves_values(ibb_primary):
    numbers = numbers_of(ibb_primary, "START WITH 5 INCREMENT BY 2 CACHE 3")
    assert [numbers.next() for _ in range(4)] == [5, 7, 9, 11]
    numbers.insert(next_not_cached_value=100)
    assert numbers.next() == 100
    assert [body[10:].hex() for body in bodies(ibb_primary, "WRITE_ROWS_V1")[:2]] == [  # of 11.8
        "000b000000000000000100000000000000feffffffffffff7f050000000000000002000000000000000300000000000000000000000000000000",
        "0011000000000000000100000000000000feffffffffffff7f050000000000000002000000000000000300000000000000000000000000000000",
    ]
    assert [after["next_not_cached_value"] for _, _, after in changes_in(ibb_primary)] == [11, 17, 100, 106]
    assert len(numbers.rows) == 1


def test_the_smallest_image_of_a_sequence_is_what_next_changes(ibb_primary):
    numbers = numbers_of(ibb_primary, "NOCACHE")
    ibb_primary.format = RowFormat(image=RowImage.MINIMAL)
    numbers.next()
    assert changes_in(ibb_primary) == [("insert", None, {"next_not_cached_value": 2, "cycle_count": 0})]


def test_the_values_of_a_sequence_are_not_rolled_back(ibb_primary, orders):
    numbers = numbers_of(ibb_primary, "NOCACHE")
    with ibb_primary.transaction(domain=3) as transaction:
        orders.insert(id=numbers.next())
        transaction.roll_back()
    assert (numbers.next(), len(orders)) == (2, 0)
    with ibb_primary.transaction(gtid="3-3-9", is_transactional=False) as own:
        numbers.next()
    assert str(own.gtid) == "3-3-9"
    with pytest.raises(ConfigurationError, match=r"orders is no sequence"):
        orders.next()
    with pytest.raises(ConfigurationError, match=r"is a sequence: insert\(\) sets its row"):
        numbers.delete(next_not_cached_value=1)


def test_rows_follow_what_ddl_does(ibb_primary, orders):
    orders.insert(id=1, total="9.90", note="gone")
    ibb_primary.ddl(
        "ALTER TABLE shop.orders ADD COLUMN city varchar(20) NOT NULL DEFAULT 'Bern' AFTER id, "
        "RENAME COLUMN total TO price, DROP COLUMN note"
    )
    assert orders.rows == [{"id": 1, "city": "Bern", "price": Decimal("9.90")}]
    orders.update(id=1, city="Basel")
    assert changes_in(ibb_primary)[-1] == (
        "update",
        {"id": 1, "city": "Bern", "price": Decimal("9.90")},
        {"id": 1, "city": "Basel", "price": Decimal("9.90")},
    )
    ibb_primary.ddl(
        "ALTER TABLE orders MODIFY price varchar(30), DROP PRIMARY KEY, ADD PRIMARY KEY (city)", database="shop"
    )
    orders.update(city="Basel", price="much")
    ibb_primary.ddl("RENAME TABLE shop.orders TO shop.sold")
    orders.insert(id=2, city="Genf")
    assert (orders.name, [row["price"] for row in orders.rows]) == ("shop.sold", ["much", None])
    assert changes_in(ibb_primary)[-1][2] == {"id": 2, "city": "Genf", "price": None}
    ibb_primary.ddl("TRUNCATE TABLE shop.sold")
    assert orders.rows == []
    ibb_primary.ddl("DROP TABLE shop.sold")
    with pytest.raises(ConfigurationError, match=r"there is no table shop\.sold"):
        orders.insert(id=1)


def test_each_version_has_a_table_id_of_its_own_and_many_rows_several_events(ibb_primary, orders, read_by_python):
    orders.insert(id=1)
    ibb_primary.ddl("ALTER TABLE shop.orders ADD COLUMN x int")
    orders.insert(id=2)
    ids = {schema.table_id for group in ibb_primary.log.groups() for schema, _ in group.rows()}
    assert len(ids) == 2
    ibb_primary.format = RowFormat(event_bytes=100)
    table = ibb_primary.table("shop.t", id="int primary key", a="varchar(90)")
    table.insert(*({"id": number, "a": "x" * 60} for number in range(4)))
    events = read_by_python(ibb_primary, WriteRowsEvent)
    assert [[row["values"]["id"] for row in event.rows] for event in events] == [[1], [2], [0], [1], [2], [3]]


def test_a_table_that_cannot_be_written_says_so_where_it_is_used(ibb_primary, orders):
    ibb_primary.ddl("ALTER TABLE shop.orders MODIFY note text, ADD UNIQUE one_note (note)")
    with pytest.raises(ConfigurationError, match="is filled in by the server"):
        orders.insert(id=1)
    ibb_primary.ddl("ALTER TABLE shop.orders DROP COLUMN note")
    orders.insert(id=1)
    with pytest.raises(ConfigurationError, match="is filled in by the server: its rows cannot be written"):
        ibb_primary.table("shop.t", id="int primary key", x="text unique")


@pytest.mark.parametrize("image", list(RowImage))
def test_compressed_rows_say_the_same(ibb_primary, orders, image):
    orders.insert(id=1, note="n")
    for is_compressed in (False, True):
        ibb_primary.format = RowFormat(image=image, is_compressed=is_compressed)
        orders.insert(id=2, note="x" * 20)
        orders.update(id=2, total=1)
        orders.delete(id=2)
    changes = changes_in(ibb_primary)[1:]
    assert changes[3:] == changes[:3]
    types = [event.type for group in ibb_primary.log.groups() for event in group.events()]
    assert [name for name in types if "COMPRESSED" in name] == [
        f"{verb}_ROWS_COMPRESSED_V1" for verb in ("WRITE", "UPDATE", "DELETE")
    ]


def write_for_fragments(primary):
    orders = primary.table("shop.orders", id="int primary key", note="text", body="blob")
    notes = primary.table("shop.notes", id="int primary key", note="varchar(300)")
    with primary.transaction():
        orders.insert(*({"id": number, "note": "é" * number, "body": bytes([number]) * 40} for number in range(20)))
        notes.insert(*({"id": number, "note": "n" * 10 * number} for number in range(9)))
        orders.update(id=3, note="longer " * 30)
    orders.delete(id=4)
    primary.format = replace(primary.format, image=RowImage.MINIMAL)
    orders.update(id=5, note="the end")
    notes.insert({"id": 100}, {"id": 101})
    return orders, notes


def read_in_each_room(primary, monkeypatch):
    found = {"rows": [(schema.name, change) for group in primary.log.groups() for schema, change in group.rows()]}
    for name in ("shop.orders", None):
        found[f"kernels {name}"] = primary.log.to_arrow(table=name).drop_columns(["_offset"]).to_pylist()
    with monkeypatch.context() as without:
        without.setattr("ibbmaster.tables.arrow.reading.load_kernels", lambda options: None)
        for name in ("shop.orders", None):
            found[f"reference {name}"] = primary.log.to_arrow(table=name).drop_columns(["_offset"]).to_pylist()
            assert found[f"reference {name}"] == found[f"kernels {name}"]
    found["live"] = live_changes(primary)
    for table in ("orders", "notes"):
        found[f"SELECT {table}"] = ask(primary, f"SELECT * FROM shop.{table} ORDER BY id")
    assert list(primary.log.verify()) == []
    return found


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("kept_max", [None, 100])
@pytest.mark.parametrize("fragment_bytes", [60, 130])
def test_fragments_of_row_events_are_read_by_everybody_as_the_rows_they_are(
    fragment_bytes, kept_max, is_compressed, monkeypatch
):
    if kept_max is not None:  # larger ones are put together on the disk
        monkeypatch.setattr("ibbmaster.logs.log.large_rows.KEPT_SIZE_MAX", kept_max)
    found = []
    for fragments in (None, fragment_bytes):
        with FixturePrimary() as primary:
            primary.format = RowFormat(fragment_bytes=fragments, is_compressed=is_compressed)
            write_for_fragments(primary)
            count = sum(event.type == "PARTIAL_ROW_DATA" for group in primary.log.groups() for event in group.events())
            assert bool(count) == (fragments is not None)
            found.append(read_in_each_room(primary, monkeypatch))
    assert found[0] == found[1]
    assert len(found[0]["SELECT orders"]) == 19


@pytest.mark.parametrize("is_compressed", [False, True])
def test_each_room_refuses_row_events_over_the_limit_of_its_user_and_says_where(is_compressed, monkeypatch):
    with FixturePrimary() as primary:
        primary.format = RowFormat(fragment_bytes=60, is_compressed=is_compressed)
        primary.table("shop.notes", id="int primary key", note="text").insert({"id": 1, "note": "n" * 2000})
        path, gtid = primary.log.path, primary.log.position
        refusal = rf"group {gtid} at binlog-000000.ibb offset \d+: a row event of 20\d\d bytes, .* at most 2000 "
        primary.log.row_event_max = 2000
        with pytest.raises(EventError, match=r"a row event of 20.*at most 2000 are taken; max_row_event_bytes"):
            [list(group.rows()) for group in primary.log.groups()]
        with pytest.raises(EventError, match=refusal):
            primary.log.to_arrow(table="shop.notes")
        with monkeypatch.context() as without:
            without.setattr("ibbmaster.tables.arrow.reading.load_kernels", lambda options: None)
            with pytest.raises(EventError, match=refusal):
                primary.log.to_arrow()
        with (
            ibbmaster.open(path, max_row_event_bytes="1999") as log,
            ibbmaster.serve(log) as served,
            pytest.raises(pymysql.MySQLError, match="at most 1999"),
        ):
            ask(served, "SELECT * FROM shop.notes")
        with ibbmaster.serve(path, max_row_event_bytes="1M") as served:
            assert len(ask(served, "SELECT * FROM shop.notes")) == 1


def test_fragments_have_at_least_one_byte():
    with pytest.raises(ConfigurationError, match="fragments of 0 bytes: expected at least 1"):
        RowFormat(fragment_bytes=0)


NUMBERS = SequenceRow(5, 1, 20, 5, 4, 3, 0, 0)


def test_a_sequence_reserves_what_is_cached_and_then_begins_again_or_runs_out():
    value, row = NUMBERS.reserved("s")
    assert (value, row) == (5, NUMBERS._replace(next_not_cached_value=17))
    assert [row.has_cached(number) for number in (9, 13, 17)] == [True, True, False]
    assert NUMBERS._replace(next_not_cached_value=13).reserved("s")[1].next_not_cached_value == 21
    falling = SequenceRow(-3, -4, -1, -1, -1, 10, 0, 0)
    assert falling.reserved("s") == (-3, falling._replace(next_not_cached_value=-5))
    with pytest.raises(ConfigurationError, match="s: the sequence has run out at 20"):
        NUMBERS._replace(next_not_cached_value=21).reserved("s")
    cycling = NUMBERS._replace(next_not_cached_value=21, cycle_option=1)
    assert cycling.reserved("s") == (1, cycling._replace(next_not_cached_value=13, cycle_count=1))
