"""What the test kit writes, real servers and their tools take for what it says, in every format of rows."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from lanes.replica import Replica

from ibbmaster.testkit import FixturePrimary, FixtureTable, RowFormat, RowImage, RowMetadata

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


@pytest.mark.parametrize(
    ("version", "profile"),
    [("10.11", "engine"), ("10.11", "classic-10.11"), ("11.8", "engine"), ("11.8", "classic-11.8")],
)
def test_a_replica_comes_to_the_contents_of_the_tables(
    version: str, profile: str, new_replica: Callable[..., Replica]
) -> None:
    replica = new_replica(version)
    with FixturePrimary(profile=profile) as primary:
        tables = write_everything(primary)
        replica.follow(primary, user=primary.user, password=primary.password)  # type: ignore[arg-type]
        replica.wait_for_gtid(str(primary.log.position))
        primary.wait_for(1001)
        for table in tables:
            assert rows_of(replica, table) == sorted(tuple(map(text_of, row.values())) for row in table.rows)


def rows_of(replica: Replica, table: FixtureTable) -> list[tuple[str, ...]]:
    names = ", ".join(f"CAST(`{name}` AS CHAR)" for name in table.rows[0])
    return sorted(tuple(map(text_of, row)) for row in replica.sql(f"SELECT {names} FROM {table.name}"))


def text_of(value: object) -> str:
    return "NULL" if value is None else str(value)


@pytest.mark.parametrize(("version", "profile"), [("10.11", "compat"), ("11.8", "classic-11.8")])
def test_the_tool_prints_the_same_rows(
    version: str,
    profile: str,
    tmp_path: Path,
    run_tool: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with FixturePrimary(tmp_path / "log", profile=profile) as primary:
        write_everything(primary)
        remote = ["--read-from-remote-server", "--protocol=TCP", f"--host={primary.host}", f"--port={primary.port}"]
        options = ["-vv", "--base64-output=decode-rows", f"--user={primary.user}", "--skip-ssl", "--to-last-log"]
        done = run_tool(version, "mariadb-binlog", *options, *remote, "--start-position=0-1-1", "binlog-000000.ibb")
        assert (done.returncode, done.stderr) == (0, "")
        files = primary.save_classic(tmp_path / "files") if profile.startswith("classic") else []
        expected = [
            (change.kind, printed(schema, change.before), printed(schema, change.after))
            for group in primary.log.groups()
            for schema, change in group.rows()
        ]
    assert printed_rows(done.stdout) == expected
    if files:
        of_files = run_tool(version, "mariadb-binlog", *options[:2], *map(str, files))
        assert (of_files.returncode, of_files.stderr) == (0, "")
        assert printed_rows(of_files.stdout) == expected


def printed(schema, image):  # type: ignore[no-untyped-def]
    """The values of an image by the numbers of their columns, as the tool prints them."""
    if image is None:
        return None
    numbers = {column.name: number for number, column in enumerate(schema.columns, start=1)}
    return {numbers[name]: printed_value(value) for name, value in image.items()}


def printed_value(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case int() | Decimal():
            return str(value)
        case bytes():
            return f"'{value.decode()}'"
        case _:
            return f"'{value}'"


def printed_rows(text: str) -> list[tuple[str, object, object]]:
    """The changes that the tool has printed: kind, image before, image after."""
    kinds = {"INSERT INTO": "insert", "UPDATE": "update", "DELETE FROM": "delete"}
    changes: list[list[object]] = []
    image: dict[int, str] = {}
    for line in text.splitlines():
        if (verb := re.fullmatch(r"### (INSERT INTO|UPDATE|DELETE FROM) .*", line)) is not None:
            changes.append([kinds[verb[1]], None, None])
        elif line in ("### SET", "### WHERE"):
            image = {}
            changes[-1][1 if line == "### WHERE" else 2] = image
        elif (value := re.fullmatch(r"###   @(\d+)=(.*) /\* .*? \*/", line)) is not None:
            image[int(value[1])] = value[2].rstrip(" ")
    return [(str(kind), before, after) for kind, before, after in changes]


REFUSALS = {  # what the clients say of a certificate; None: they log in
    "trusted": (None, None),
    "expired": ("certificate has expired", "certificate has expired"),
    "not-yet-valid": ("certificate is not yet valid", "certificate is not yet valid"),
    "wrong-host": ("Validation of SSL server certificate failed", None),  # 11.8 asks no name of a local address
    "unknown-authority": ("unable to get local issuer certificate", "unable to get local issuer certificate"),
}


@pytest.mark.parametrize("tls", REFUSALS)
@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_clients_refuse_a_certificate_for_what_is_wrong_with_it(
    version: str, tls: str, run_tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    refusal = REFUSALS[tls][version == "11.8"]
    with FixturePrimary(tls=tls, password="secret") as primary:
        account = [f"--host={primary.host}", f"--port={primary.port}", f"--user={primary.user}", "--password=secret"]
        looking = [f"--ssl-ca={primary.authority_file}", "--ssl-verify-server-cert"]
        done = run_tool(version, "mariadb", "--protocol=TCP", *account, *looking, "--batch", "-e", "SELECT 1")
    assert done.returncode == (refusal is not None)
    assert f"TLS/SSL error: {refusal}" in done.stderr if refusal else done.stdout == "1\n1\n"


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_the_tool_reads_files_that_grow(
    version: str, tmp_path: Path, run_tool: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    with FixturePrimary(profile=f"classic-{version}") as primary:
        primary.save_classic(tmp_path / "live", is_live=True)
        orders = primary.table("shop.orders", id="int primary key")
        for number in range(3):
            orders.insert(id=number)
            files = sorted(map(str, (tmp_path / "live").glob("binlog.0*")))
            done = run_tool(version, "mariadb-binlog", "--verify-binlog-checksum", *files)
            assert (done.returncode, done.stderr) == (0, "")
            found = re.findall(r"GTID (0-1-\d+)", done.stdout)
            assert found == [f"0-1-{seq_no}" for seq_no in range(1, 4 + number)]
            assert len(files) == 1 + number
            assert done.stdout.count("Warning: this binlog is either in use") == 1
            primary.log.flush()
