"""What a real server and ours say of the same tables, triggers, routines and events.

Ours knows them from the real one's binlog alone; programs can be dumped into another server.
"""

import re
import struct
import subprocess
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
from lanes.pair import Pair, ask, connect, expect_alike, served_beside
from lanes.primary import login_options
from lanes.sql import run_script, sql_beside

from ibbmaster.replication.event.rows.charset import decode_text, encode_text
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.case_table import data_beside

_SQL = sql_beside(__file__)
#: Prepared with a value for each `?`: the same rows in the binary protocol.
PREPARED = data_beside(__file__)["prepared"]
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'r1' ORDER BY 1"


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def pair(request, server_of, tmp_path_factory) -> Iterator[Pair]:
    server = server_of(RealPrimary, request.param, [], "--binlog-format=ROW")
    with served_beside(server, _SQL["ddl"], tmp_path_factory.mktemp("binlogs")) as both:
        yield both


def test_tables_are_shown_letter_by_letter_as_a_real_primary_shows_them(pair):
    with pair.asking() as (ours, real):
        names = [name for (name,) in ask(real, TABLES)[1]]
        shown = [f"SHOW CREATE TABLE r1.`{name}`" for name in names]
        wanted = [ask(real, sql)[1][0][1] for sql in shown]
        assert [ask(ours, sql)[1][0][1] for sql in shown] == wanted
    assert len(names) > 10


def test_statements_about_tables_are_answered_as_by_a_real_primary(pair):
    with pair.asking() as (ours, real):
        expect_alike((sql, ask(ours, sql), ask(real, sql)) for sql in _SQL["about tables"])


def test_columns_of_results_are_described_as_by_a_real_primary(pair):
    in_utf8mb4 = _SQL["result settings in utf8mb4"]
    for setting in (*in_utf8mb4, *_SQL["result settings in other character sets"]):
        with pair.asking("SET NAMES DEFAULT, time_zone = '+00:00'", setting) as (ours, real):
            asked = (*_SQL["described"], *(_SQL["described in utf8mb4"] if setting in in_utf8mb4 else ()))
            expect_alike((f"{setting}: {sql}", described(ours, sql), described(real, sql)) for sql in asked)


CODES_OF_EUCJPMS = (
    "SELECT HEX(code), HEX(CONVERT(text USING utf8mb4)), HEX(CONVERT(CONVERT(text USING utf8mb4) USING eucjpms)) "
    "FROM (SELECT code, CONVERT(code USING eucjpms) text FROM (SELECT "
    "CONCAT(UNHEX(prefix), CHAR(first.seq), CHAR(second.seq)) code FROM (SELECT '' prefix UNION ALL SELECT '8F') p, "
    "r1.seq_161_to_254 first, r1.seq_161_to_254 second) codes) texts"
)


def test_every_character_of_eucjpms_is_that_of_a_real_server(pair):
    with connect(pair.real) as real:
        rows = ask(real, CODES_OF_EUCJPMS)[1]
    different = []
    for code, shown, back in rows:
        try:
            mine = decode_text(bytes.fromhex(code), "eucjpms")
        except ValueError:
            mine = None
        theirs = None if shown is None else bytes.fromhex(shown).decode()
        if mine != (None if theirs is None or "?" in theirs else theirs):
            different.append((code, mine, theirs))
        elif mine is not None and encode_text(mine, "eucjpms").hex().upper() != back:
            different.append((code, encode_text(mine, "eucjpms")))
    assert len(rows) == 2 * 94 * 94
    assert not different, (len(different), different[:10])


def test_queries_of_the_own_tables_of_a_server_are_told_as_by_a_real_one(pair):
    session = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, time_zone = '+00:00'"
    with pair.asking(session, "USE r1") as (ours, real):
        expect_alike((sql, described(ours, sql), described(real, sql)) for sql in _SQL["told by expressions"])


def described(connection: Any, sql: str) -> Any:
    """What definitions say of the values, and the rows in any order."""
    found = ask(connection, sql, attrgetter("name", "charsetnr", "length", "type_code", "flags", "scale"))
    return found if isinstance(found[0], int) else (found[0], sorted(found[1], key=repr))


class Preparing:
    """A connection that prepares on the server, packet by packet."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _send(self, payload: bytes) -> None:
        self._connection._next_seq_id = 0
        self._connection.write_packet(payload)

    def _read(self) -> bytes:
        header = self._connection._read_bytes(4)
        self._connection._next_seq_id = (header[3] + 1) % 256
        return bytes(self._connection._read_bytes(int.from_bytes(header[:3], "little")))

    def _until_eof(self) -> list[bytes]:
        found = []
        while not (payload := self._read()).startswith((b"\xfe", b"\xff")):
            found.append(payload)
        return found

    def run(self, sql: str, values: tuple[object, ...]) -> Any:
        """How many parameters and columns it has, and its rows; or what else is answered."""
        self._send(b"\x16" + sql.encode())
        first = self._read()
        if first.startswith(b"\xff"):
            return first
        statement_id, columns, parameters = struct.unpack_from("<IHH", first, 1)
        for count in (parameters, columns):
            if count:
                self._until_eof()
        self._send(b"\x17" + struct.pack("<IBI", statement_id, 0, 1) + bound(values))
        answer = self._read()
        if answer.startswith((b"\x00", b"\xff")):
            return columns, parameters, answer
        self._until_eof()
        rows = self._until_eof()
        self._send(b"\x19" + struct.pack("<I", statement_id))
        return columns, parameters, rows


def bound(values: tuple[object, ...]) -> bytes:
    types, data = b"", b""
    for value in values:
        if isinstance(value, int):
            types, data = types + b"\x08\x00", data + struct.pack("<q", value)
        else:
            text = str(value).encode()
            types, data = types + b"\xfd\x00", data + bytes([len(text)]) + text
    return bytes((len(values) + 7) // 8) + b"\x01" + types + data if values else b""


def test_prepared_statements_are_answered_as_by_a_real_primary(pair):
    with pair.asking() as (ours, real):
        mine, theirs = Preparing(ours), Preparing(real)
        expect_alike((sql, mine.run(sql, values), theirs.run(sql, values)) for sql, values in PREPARED)


ZONES = ("+00:00", "-05:30")
PROGRAMS = _SQL["programs"]
#: What a server has as ours: the log has all that it says.
SHOWN = _SQL["shown"]
#: What a server has as ours but for columns that are NULL, because only a statement says what is in them.
LISTED = _SQL["listed"]
#: What an ALTER has changed, or a declaration of parameters says: refused.
REFUSED = _SQL["refused"]


@pytest.fixture(scope="module", params=MARIADB_VERSIONS)
def programs(request, server_of, tmp_path_factory) -> Iterator[Pair]:
    server = server_of(RealPrimary, request.param, [])
    with served_beside(server, PROGRAMS, tmp_path_factory.mktemp("binlogs")) as both:
        yield both


@pytest.mark.parametrize("zone", ZONES)
def test_programs_are_shown_as_a_real_primary_shows_them_as_far_as_the_log_is_read(programs, zone):
    with programs.asking(f"SET time_zone='{zone}'") as (ours, real):
        answers = [(sql, ask(ours, sql), ask(real, sql)) for sql in SHOWN]
        for sql in LISTED:
            (names, mine), theirs = ask(ours, sql), ask(real, sql)
            mine, other = sorted(mine, key=named), sorted(theirs[1], key=named)
            told_there = [told(*rows, names) for rows in zip(mine, other, strict=True)]
            answers.append((sql, (names, mine), (theirs[0], told_there)))
        assert {sql: ask(ours, sql)[0] for sql in REFUSED} == dict.fromkeys(REFUSED, 1235)
    expect_alike(answers)


def told(mine: Any, theirs: Any, names: list[str]) -> Any:
    """A row of a real server without what ours leaves open, and with the statement as it was logged."""
    both = zip(mine, theirs, names, strict=True)
    logged = ("Create ", "SQL Original ")
    return tuple(one if one is None or name.startswith(logged) else other for one, other, name in both)


def named(row: Any) -> list[str]:
    return [str(one) for one in row[:3]]


def test_a_dump_of_ours_makes_the_same_programs_on_a_real_server(programs, new_server):
    options = ["--routines", "--triggers", "--events", "--databases", "r1"]
    options = ["--no-defaults", *login_options(programs.ours), "--skip-ssl", "--skip-lock-tables", *options]
    command = [*programs.real.programs.command("mariadb-dump"), *options]
    dumped = subprocess.run(command, capture_output=True, check=True).stdout
    server = new_server(programs.real.programs.version)
    assert run_script(server, dumped, "--comments") == ""

    created = [sql for sql in (*SHOWN, *LISTED) if sql.startswith("SHOW CREATE ")]
    with connect(programs.real) as real, connect(server) as other:
        differences = [sql for sql in created if without_time(ask(real, sql)) != without_time(ask(other, sql))]
    assert not differences


def without_time(answer: Any) -> str:
    return re.sub(r"'\d{4}-\d\d-\d\d [\d:.]+'", "", str(answer))
