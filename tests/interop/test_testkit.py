"""What the test kit writes, real servers and their tools take for what it says, in every format of rows."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from lanes.primary import login_options
from lanes.printed_rows import Printed, changes_in, printed_changes, printed_image, without_untold
from lanes.replay import events_in
from lanes.replica import Replica
from lanes.sql import sql_beside

from ibbmaster.replication.event.gtid_event import decode_gtid_event, encode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, decode_event_header
from ibbmaster.replication.event.query import STATUS_XID, decode_query, encode_query, status_variables
from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.replication.event.rows.column import Column
from ibbmaster.replication.event.statement.logged import STATUS_MICROSECONDS
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit import FixturePrimary, FixtureTable, RowFormat, RowImage, RowMetadata
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError
from ibbmaster.testkit.mariadb_server import RealServer
from tests.column_sorts import GENERATED, NEWEST, SORTS

#: Tables of a real server; what is run where nothing is open, DROP as a server logs it; what is in transactions.
TABLES, GROUPS, STATEMENTS = map(sql_beside(__file__).get, ("tables", "groups", "statements"))
FORMATS = [
    RowFormat(image=image, metadata=metadata, is_compressed=is_compressed)
    for image, metadata, is_compressed in itertools.product(RowImage, RowMetadata, (False, True))
]
COLUMNS = {
    "id": "bigint unsigned primary key",
    "total": "decimal(10,2)",
    "name": "varchar(40) default 'nobody'",
    "body": "text",
    "made": "datetime(3) default current_timestamp(3)",
}


def write_everything(primary: FixturePrimary) -> list[FixtureTable]:
    """Changes of every format, in every sort of group."""
    orders, plain = primary.table("shop.orders", **COLUMNS), primary.table("shop.plain", a="int", b="varchar(9)")
    for number, way in enumerate(FORMATS):
        primary.format, first = way, 10 * number
        orders.insert(id=first, total="9.90", name="Zoë " * 5, body="x" * 300)
        with primary.transaction(domain=1) as transaction:
            transaction.annotate("INSERT INTO shop.orders …")
            orders.insert(*({"id": first + step, "total": step} for step in range(1, 6)))
            transaction.savepoint("here")
            orders.delete(id=first + 1)
            transaction.roll_back_to("here")
            orders.update(id=first + 2, name=None)
            orders.update({"id": first + 3}, id=first + 8, body="moved")
            orders.delete(id=first + 4)
            plain.insert({"a": number, "b": "x"}, {"a": number, "b": "y"})
            plain.update({"a": number, "b": "x"}, b="z")
            plain.delete({"a": number, "b": "y"})
        with primary.transaction(domain=1, is_transactional=False) as transaction:
            orders.update(id=first, total=-1)
            transaction.statement("DELETE FROM shop.orders WHERE id < 0")
        with primary.transaction() as prepared:
            orders.insert(id=first + 6)
            prepared.prepare(f"xa {number}")
        (primary.xa_commit if number % 2 else primary.xa_rollback)(f"xa {number}")
        primary.clock.advance(1.125)
    primary.ddl(
        "ALTER TABLE shop.orders ADD COLUMN city varchar(20) NOT NULL DEFAULT 'Bern' AFTER id, DROP COLUMN body"
    )
    primary.ddl("ALTER TABLE shop.orders RENAME COLUMN total TO price, MODIFY name varchar(60)")
    for number, way in enumerate(FORMATS):
        primary.format = way
        with primary.transaction(domain=2):
            orders.update(id=10 * number, city="Basel", price="1.50")
            orders.insert(id=10 * number + 9, name="late")
    primary.ddl("RENAME TABLE shop.plain TO shop.renamed")
    plain.insert(a=99, b="last")
    return [orders, plain]


BIG_BYTES = 18 << 20  # of several packets
TOP = 2**32 - 1


def write_shapes(primary: FixturePrimary, sorts: dict[str, tuple[str, object]]) -> list[FixtureTable]:
    """Columns of every sort in every format, sequences, ALTER in two phases, and the greatest GTIDs."""
    table = primary.table("shop.sorts", id="int primary key", **{name: sort for name, (sort, _) in sorts.items()})
    primary.ddl("CREATE TABLE shop.prefixed (a text, b int, n blob compressed, PRIMARY KEY (a(5), b))")
    prefixed = primary.table("shop.prefixed")
    primary.ddl("CREATE SEQUENCE shop.numbers START WITH 5 INCREMENT BY 2 CACHE 3 CYCLE MAXVALUE 12")
    numbers = primary.table("shop.numbers")
    generated = [name for name, (sort, _) in sorts.items() if " as (" in sort]
    values = {name: value for name, (_, value) in sorts.items() if name not in generated}
    for number, way in enumerate(FORMATS):
        primary.format = way
        table.insert(id=number, **{name: value for name, value in values.items() if name != "big" or not number})
        table.insert(id=-number - 1)
        table.update(
            id=number,
            packed="y" * number,
            place=values["place"] if number % 2 else None,
            span="-00:00:01.000001",
            no_day="2026-00-00",
        )
        with primary.transaction(domain=number):
            prefixed.insert({"a": "x" * 9, "b": number}, {"a": "x" * 9, "b": -number - 1})
            prefixed.update(a="x" * 9, b=number, n=b"n" * 200)
        assert numbers.next() in range(1, 13)
        started = primary.start_alter(f"ALTER TABLE shop.sorts COMMENT='{number}'", domain=number)
        refused = primary.start_alter("ALTER TABLE prefixed ADD UNIQUE (n(3))", database="shop")
        table.delete(id=-number - 1)
        primary.commit_alter(started)
        primary.rollback_alter(refused)
    numbers.insert(next_not_cached_value=11, cycle_count=7)
    for seq_no in (2**63 - 1, 2**63, 2**64 - 2):
        with primary.transaction(domain=TOP, server_id=TOP, seq_no=seq_no):
            prefixed.insert(a="late", b=-seq_no % 1000)
    return [table, prefixed, numbers]


@pytest.mark.parametrize(
    ("version", "profile"),
    [("10.11", "engine"), ("10.11", "classic-10.11"), ("11.8", "engine"), ("11.8", "classic-11.8")],
)
def test_a_replica_comes_to_the_contents_of_the_tables(version, profile, new_replica, memory_path):
    replica = new_replica(version)
    with FixturePrimary(memory_path / "log", profile=profile) as primary:
        big = {"big": ("longblob", b"\0b" * (BIG_BYTES // 2))}
        tables = write_everything(primary) + write_shapes(
            primary, SORTS | GENERATED | big | (NEWEST if version != "10.11" else {})
        )
        replica.follow(primary)
        replica.wait_for_gtid(str(primary.log.position))
        primary.wait_for(1001)
        for table in tables:
            assert rows_of(replica, table) == sorted(tuple(map(text_of, row.values())) for row in table.rows)


def rows_of(replica: Replica, table: FixtureTable) -> list[tuple[str, ...]]:
    names = ", ".join(expression(name, [row[name] for row in table.rows]) for name in table.rows[0])
    return sorted(tuple(map(text_of, row)) for row in replica.sql(f"SELECT {names} FROM {table.name}"))


def expression(name: str, values: list[object]) -> str:
    """What gives a column's values as `text_of` shows them."""
    match next((value for value in values if value is not None), None):
        case int():
            return f"CAST(`{name}` + 0 AS CHAR)"  # also of BIT
        case bytes():
            return f"HEX(`{name}`)"
        case tuple():
            return f"VEC_ToText(`{name}`)"
    return f"CAST(`{name}` AS CHAR)"


def text_of(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return value.hex().upper()
        case tuple():
            return f"[{','.join(f'{number:g}' for number in value)}]"
    return str(value)


@pytest.mark.parametrize(("version", "profile"), [("10.11", "compat"), ("11.8", "classic-11.8")])
def test_the_tool_prints_the_same_rows(version, profile, tmp_path, run_tool):
    with FixturePrimary(tmp_path / "log", profile=profile) as primary:
        write_everything(primary)
        remote = [f"--user={primary.user}", f"--host={primary.host}", f"--port={primary.port}", "--protocol=TCP"]
        remote += ["--read-from-remote-server", "--skip-ssl", "--to-last-log", "--start-position=0-1-1"]
        sources = [[*remote, "binlog-000000.ibb"]]
        if profile.startswith("classic"):
            sources.append([str(path) for path in primary.save_classic(tmp_path / "files")])
        for source in sources:
            done = run_tool(version, "mariadb-binlog", "-vv", "--base64-output=decode-rows", *source)
            assert (done.returncode, done.stderr) == (0, "")
            expect_printed(changes_in(done.stdout.encode(errors="surrogateescape")), logged_changes(primary))


def test_the_tool_prints_the_same_of_columns_of_every_sort(version, tmp_path):
    with FixturePrimary(profile=f"classic-{version}") as primary:
        write_shapes(primary, SORTS | GENERATED)
        files = primary.save_classic(tmp_path / "files")
        try:
            found = [change for path in files for change in printed_changes(path, version)]
        except ProgramsMissingError as error:
            pytest.skip(str(error))
        expect_printed(found, logged_changes(primary))


def logged_changes(primary: FixturePrimary) -> list[tuple[tuple[Column, ...], Printed]]:
    """Every image of the log with its columns, as the tool prints it."""
    return [
        (schema.columns, (schema.name, change.kind, printed_image(schema.columns, values)))
        for group in primary.log.groups()
        for schema, change in group.rows()
        for image in (change.before, change.after)
        if image is not None
        for values in [tuple(image.get(column.name, ABSENT) for column in schema.columns)]
    ]


def expect_printed(found: list[Printed], logged: list[tuple[tuple[Column, ...], Printed]]) -> None:
    told = [without_untold(columns, change) for (columns, _), change in zip(logged, found, strict=True)]
    assert told == [without_untold(*one) for one in logged]


SERVER_OPTIONS = (
    *("--log-bin=binlog", "--binlog-format=ROW"),
    *("--binlog-checksum=CRC32", "--binlog-annotate-row-events=OFF"),
)
POINT = bytes(4) + b"\1\1\0\0\0" + bytes(16)
#: A table, and what is done to it: insert values, or update the row of the first values by others, or delete it.
SERVER_CHANGES: tuple[tuple[str, str, dict[str, object], dict[str, object]], ...] = (
    (
        *("shop.sorts", "insert"),
        {"id": 1, "l": "Zö€", "u": "Z😀", "c": "a b  ", "t": "ü ", "v": "short", "b": "x" * 300, "vb": b"\1\2"}
        | {"e": "ä", "s": "é,z", "n": "ü", "g": POINT, "bi": b"ab\0\0", "a": "x ", "sp": "-00:00:00.125"}
        | {"un": 2**64 - 1, "uid": "123e4567-e89b-12d3-a456-426655440000", "i6": "2001:db8::"},
        {},
    ),
    ("shop.sorts", "insert", {"id": 2}, {}),
    ("shop.sorts", "update", {"id": 1}, {"l": "q", "v": "short"}),
    ("shop.sorts", "update", {"id": 1}, {"b": "y", "g": None}),
    ("shop.sorts", "delete", {"id": 1}, {}),
    *((f"shop.{name}", "insert", {"a": value, "b": 3}, {}) for name, value in (("no_key", 1), ("other_key", 1))),
    *((f"shop.{name}", "update", {"a": 1}, {"b": "5"}) for name in ("no_key", "other_key")),
    *((f"shop.{name}", "delete", {"a": 1}, {}) for name in ("no_key", "other_key")),
    ("shop.part_key", "insert", {"a": "abcdefgh", "b": 1}, {}),
    ("shop.part_key", "update", {"a": "abcdefgh", "b": 1}, {"c": 7}),
    ("shop.part_key", "delete", {"a": "abcdefgh", "b": 1}, {}),
)


def test_the_events_of_rows_are_those_of_a_real_server_byte_by_byte(version, server_of, tmp_path):
    images = [image for image in RowImage if version != "10.11" or image is not RowImage.FULL_NODUP]
    with (
        server_of(RealServer, version, *SERVER_OPTIONS) as server,
        FixturePrimary(profile=f"classic-{version}") as primary,
    ):
        has_generated = logs_generated_columns(server)
        formats = [
            RowFormat(image=image, metadata=metadata, has_generated=has_generated)
            for image in images
            for metadata in RowMetadata
        ]
        for sql in ("CREATE DATABASE shop COLLATE utf8mb4_general_ci", *TABLES):
            primary.ddl(sql)
            server.sql(sql)
        for way in formats:
            primary.format = way
            server.sql(f"SET GLOBAL binlog_row_metadata={way.metadata.value}")
            server.sql(f"SET binlog_row_image={way.image.value}")
            for name, verb, first, then in SERVER_CHANGES:
                change(primary, server, name, verb, first, then)
            primary.table("shop.sorts").delete(id=2)
            server.sql("DELETE FROM shop.sorts")
            for name in ("numbers", "single") * 3:
                assert server.sql(f"SELECT NEXTVAL(shop.{name})") == ((primary.table(f"shop.{name}").next(),),)
        (file,) = primary.save_classic(tmp_path / "saved")
        assert row_events(file) == row_events(server.data / "binlog.000001")


def logs_generated_columns(server: RealServer) -> bool:
    """Whether images of UPDATE have generated columns, as a server shows; its log begins anew then."""
    server.sql("CREATE DATABASE probe")
    server.sql("CREATE TABLE probe.g (a INT, g INT AS (a) STORED)")
    server.sql("INSERT INTO probe.g (a) VALUES (1)")
    server.sql("UPDATE probe.g SET a = 2")
    *_, update = (event for event in events_in(server.data / "binlog.000001") if event[4] == 24)
    columns = decode_rows_header(update).columns_present[0]
    server.sql("DROP DATABASE probe")
    server.sql("RESET MASTER")
    return columns == 0b11


def change(
    primary: FixturePrimary, server: RealServer, name: str, verb: str, first: dict[str, object], then: dict[str, object]
) -> None:
    table = primary.table(name)
    where = " AND ".join(f"{column} = %s" for column in first)
    match verb:
        case "insert":
            table.insert(first)
            names = ", ".join(first)
            server.sql(f"INSERT INTO {name} ({names}) VALUES ({', '.join(['%s'] * len(first))})", (*first.values(),))
        case "update":
            table.update(first, **then)
            sets = ", ".join(f"{column} = %s" for column in then)
            server.sql(f"UPDATE {name} SET {sets} WHERE {where}", (*then.values(), *first.values()))
        case "delete":
            table.delete(first)
            server.sql(f"DELETE FROM {name} WHERE {where}", (*first.values(),))


def row_events(path: Path) -> list[tuple[int, str]]:
    """Types and bodies of the TABLE_MAP and row events of a file, without the numbers of tables."""
    return [(event[4], event[25:].hex()) for event in events_in(path) if event[4] in (19, 23, 24, 25)]


def test_the_events_of_statements_are_those_of_a_real_server_byte_by_byte(version, server_of, tmp_path):
    options = [*SERVER_OPTIONS, "--character-set-server=utf8mb4"]
    with server_of(RealServer, version, *options) as server, FixturePrimary(profile=f"classic-{version}") as primary:
        for sql in GROUPS:
            primary.ddl(sql)
            server.sql(sql)
        table, plain = primary.table("shop.t"), primary.table("shop.m")
        for sql in STATEMENTS:
            run(server, "SET binlog_format=STATEMENT", sql, "SET binlog_format=ROW")
            with primary.transaction() as transaction:
                transaction.statement(sql)
        run(server, "INSERT INTO shop.m VALUES (1, 1)")
        with primary.transaction(is_transactional=False):
            plain.insert(id=1, c=1)
        run(server, "BEGIN", "INSERT INTO shop.t VALUES (7, 'a', 1)", "SAVEPOINT `here`", "COMMIT")
        with primary.transaction() as transaction:
            table.insert(id=7, v="a", k=1)
            transaction.savepoint("here")
        for end in ("COMMIT", "ROLLBACK"):
            insert = f"INSERT INTO shop.t (id) VALUES ({len(end)})"
            run(server, "XA START 'x'", insert, "XA END 'x'", "XA PREPARE 'x'", f"XA {end} 'x'")
            with primary.transaction() as transaction:
                table.insert(id=len(end))
                transaction.prepare("x")
            (primary.xa_commit if end == "COMMIT" else primary.xa_rollback)("x")
        run(server, "SET binlog_alter_two_phase=1", "INSERT INTO shop.m VALUES (1, 1)")
        with primary.transaction(is_transactional=False):
            plain.insert(id=1, c=1)
        for sql in ("ALTER TABLE shop.t ADD COLUMN d int", "ALTER TABLE shop.n ADD COLUMN d int"):
            run(server, sql)
            primary.commit_alter(primary.start_alter(sql))
        refused = "ALTER TABLE shop.m ADD UNIQUE (c)"
        with pytest.raises(pymysql.err.IntegrityError):
            run(server, refused)
        primary.rollback_alter(primary.start_alter(refused))
        (file,) = primary.save_classic(tmp_path / "saved")
        assert statement_events(file) == statement_events(server.data / "binlog.000001")


def run(server: RealServer, *statements: str) -> None:
    for sql in statements:
        server.sql(sql)


def statement_events(path: Path) -> list[tuple[str, int, str]]:
    """What GTID and QUERY events of a file say, flags and bodies, without numbers of the session and the time."""
    events = []
    for event in events_in(path):
        header = decode_event_header(event)
        if header.event_type == EventType.GTID:
            head = decode_gtid_event(event)
            made = encode_gtid_event(replace(head, thread_id=head.thread_id and 1))
            events.append((str(head.gtid), header.flags, made[EVENT_HEADER_SIZE:].hex()))
        if header.event_type == EventType.QUERY:
            query = decode_query(event)
            status = b"".join(
                bytes([code]) + (bytes(len(value)) if code in (STATUS_MICROSECONDS, STATUS_XID) else value)
                for code, value in status_variables(query.status)
            )
            body = encode_query(replace(query, thread_id=0, seconds=0, status=status), server_id=1)[EVENT_HEADER_SIZE:]
            events.append((query.text.decode(), header.flags, body.hex()))
    return events


REFUSALS = {  # what the clients say of a certificate; None: they log in
    "trusted": (None, None),
    "expired": ("certificate has expired", "certificate has expired"),
    "not-yet-valid": ("certificate is not yet valid", "certificate is not yet valid"),
    "wrong-host": ("Validation of SSL server certificate failed", None),  # 11.8 asks no name of a local address
    "unknown-authority": ("unable to get local issuer certificate", "unable to get local issuer certificate"),
}


@pytest.mark.parametrize("tls", REFUSALS)
def test_clients_refuse_a_certificate_for_what_is_wrong_with_it(version, tls, run_tool):
    refusal = REFUSALS[tls][version == "11.8"]
    with FixturePrimary(tls=tls, password="secret") as primary:
        options = ["--protocol=TCP", *login_options(primary), f"--ssl-ca={primary.authority_file}"]
        done = run_tool(version, "mariadb", *options, "--ssl-verify-server-cert", "--batch", "-e", "SELECT 1")
    assert done.returncode == (refusal is not None)
    assert f"TLS/SSL error: {refusal}" in done.stderr if refusal else done.stdout == "1\n1\n"


def test_the_tool_reads_files_that_grow(version, tmp_path, run_tool):
    with FixturePrimary(profile=f"classic-{version}") as primary:
        primary.save_classic(tmp_path / "live", is_live=True)
        orders = primary.table("shop.orders", id="int primary key")
        for number in range(3):
            orders.insert(id=number)
            files = sorted(map(str, (tmp_path / "live").glob("binlog.0*")))
            done = run_tool(version, "mariadb-binlog", "--verify-binlog-checksum", *files)
            assert (done.returncode, done.stderr) == (0, "")
            assert re.findall(r"GTID (0-1-\d+)", done.stdout) == [f"0-1-{seq_no}" for seq_no in range(1, 4 + number)]
            assert len(files) == 1 + number
            assert done.stdout.count("Warning: this binlog is either in use") == 1
            primary.log.flush()
