"""What a server answers to SELECTs, byte by byte, and what our reader of tables answers to the same."""

from __future__ import annotations

import json
import lzma
import random
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pymysql

import ibbmaster
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.primary.dialogue.log_tables import LogSnapshot
from ibbmaster.primary.select.table_reader import TableReader
from ibbmaster.primary.server.tables import PrimaryTables
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.wire.binary_row import encode_binary_row
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import Err, ResultSet, encode_column, encode_row, is_eof
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.codec import lenenc
from ibbmaster.testkit.mariadb_server import RealServer
from lanes.sql import copy_binlogs, sql_beside

COM_QUERY, COM_STMT_PREPARE, COM_STMT_EXECUTE, COM_STMT_CLOSE = 3, 0x16, 0x17, 0x19
FOLDER = Path(__file__).parents[3] / "fixtures" / "answers"
VERSION = 110806
PACKET_MAX = 0xFFFFFF
REFUSED = {"tables": 22}  # recorded answers that are refused


class Session(NamedTuple):
    """What a session has set: the statement, and what our dialog makes of it for a query."""

    sql: str
    charset: str | None
    collation: int
    time_zone_s: int


SESSIONS = (
    Session("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, time_zone = '+02:00'", "utf8mb4", 45, 7200),
    Session("SET NAMES latin1, time_zone = '-11:30'", "latin1", 8, -41400),
    Session("SET NAMES utf8mb4, character_set_results = binary, time_zone = '+00:00'", "binary", 63, 0),
    Session("SET NAMES utf8mb4, character_set_results = NULL, time_zone = '+00:00'", None, 63, 0),
)


class Answered(NamedTuple):
    """The payloads of column definitions and rows."""

    columns: list[bytes]
    rows: list[bytes]


class RawClient:
    """A connection to a server that keeps the payloads as they come."""

    def __init__(self, session: Session, **account: object) -> None:
        self._connection: Any = pymysql.connect(**{"charset": "utf8mb4", "autocommit": True, **account})  # type: ignore[call-overload]
        self._connection.cursor().execute(session.sql)

    @classmethod
    def of_root(cls, server: RealServer, session: Session = SESSIONS[0]) -> RawClient:
        return cls(session, unix_socket=str(server.socket), user="root")

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def text(self, sql: str) -> Answered:
        self._connection._execute_command(COM_QUERY, sql)
        self._payload()
        return Answered(list(self._until_eof()), list(self._until_eof()))

    def binary(self, sql: str) -> Answered:
        self._connection._execute_command(COM_STMT_PREPARE, sql)
        head = self._payload()
        (statement,) = struct.unpack_from("<I", head, 1)
        if head[7:9] != b"\0\0":
            list(self._until_eof())
        list(self._until_eof())
        self._connection._execute_command(COM_STMT_EXECUTE, struct.pack("<IBI", statement, 0, 1))
        self._payload()
        answered = Answered(list(self._until_eof()), list(self._until_eof()))
        self._connection._execute_command(COM_STMT_CLOSE, struct.pack("<I", statement))
        return answered

    def _payload(self) -> bytes:
        return bytes(self._connection._read_packet()._data)

    def _until_eof(self) -> Iterator[bytes]:
        while not is_eof(payload := self._payload()):
            yield payload


def new_dialog(tables: Any, engine: LogEngine, sql: str, profile_name: str = "classic-11.8") -> Dialog:
    """A session about the tables of a log that has run a statement."""
    profile = PROFILES[profile_name]
    facts: Any = SimpleNamespace(
        tables=tables, server_id=1, server_version=profile.server_version, profile=profile,
        binlog_state=engine.state, unix_timestamp=lambda: 1778384896.0, processes=list, without_paths=lambda text: text,
    )  # fmt: skip
    dialog = Dialog(facts, connection_id=1, user="root", host="::1")
    dialog.query(sql.encode())
    return dialog


class OurTables(PrimaryTables):
    """The tables of a log in this process, asked as a session does it; the log goes on from the dump `base`."""

    def __init__(self, engine: LogEngine, base: Path | None = None) -> None:
        super().__init__(engine, base=base, has_kernels=False)
        self.engine = engine
        self._asked_at = self.snapshot()
        self._dialogs: dict[Session, Dialog] = {}

    @property
    def history(self) -> SchemaHistory:
        return self._timeline(self.engine.end())._history

    @property
    def reader(self) -> TableReader:
        return self._reader()

    @reader.setter
    def reader(self, reader: TableReader) -> None:
        self._table_reader = reader

    def at(self, place: SchemaPlace | None = None) -> SchemaCatalog:
        """As `SchemaTimeline` has it."""
        return self.history.at(place)

    def table_at(self, database: str, name: str, place: SchemaPlace) -> Any:
        """As `SchemaTimeline` has it."""
        return self.history.table_at(database, name, place)

    def snapshot(self, end: LogPosition | None = None) -> LogSnapshot:
        return LogSnapshot(end=end or self.engine.end(), file_name="", state=self.engine.state())

    def newest(self) -> LogSnapshot:
        """That which is asked about."""
        return self._asked_at

    def _dialog(self, session: Session) -> Dialog:
        if session not in self._dialogs:
            self._dialogs[session] = new_dialog(self, self.engine, session.sql)
        return self._dialogs[session]

    def table(self, full_name: str, snapshot: LogSnapshot) -> TableVersion:
        found = self.catalog(snapshot).table(*parse_table_name(full_name))
        assert isinstance(found, TableVersion), found
        return found

    def base_tables(self, snapshot: LogSnapshot) -> list[TableVersion]:
        """Those that are known, in the order of their names."""
        tables = self.history.at(SchemaPlace(snapshot.end, 0)).tables
        found = [table for _, table in sorted(tables.items()) if isinstance(table, TableVersion)]
        return [table for table in found if table.kind is TableKind.BASE]

    def response(
        self, sql: str, session: Session = SESSIONS[0], *, is_binary: bool = False, snapshot: LogSnapshot | None = None
    ) -> Any:
        """The last answer to a text, as it goes to a connection."""
        self._asked_at = snapshot or self.snapshot()
        dialog = self._dialog(session)
        if not is_binary:
            return dialog.query(sql.encode())[-1]
        (prepared,) = dialog.prepared.prepare(sql.encode())
        return prepared if isinstance(prepared, Err) else dialog.prepared.execute(prepared.statement_id, b"")[-1]

    def answer(self, sql: str, session: Session = SESSIONS[0], *, is_binary: bool = False, **at: Any) -> Answered:
        """The answer to a SELECT, its packets as they are sent. Raises RefusedError: it is refused."""
        result = self.response(sql, session, is_binary=is_binary, **at)
        if isinstance(result, Err):
            raise RefusedError(result.code, result.sqlstate, result.text)
        columns = [encode_column(column) for column in result.columns]
        if isinstance(result, ResultSet):
            encode = (lambda row: encode_binary_row(result.columns, row)) if is_binary else encode_row
            return Answered(columns, [encode(row) for row in result.rows])
        return Answered(columns, list(payloads_of(result.blocks)))


def payloads_of(blocks: Any) -> Iterator[bytes]:
    """The payloads in blocks of packets, whose numbers must be in order. Raises RefusedError: they end in an error."""
    sequence, payload = 7, b""
    while (found := blocks.next_block(sequence)) is not None:
        if isinstance(found, Err):
            raise RefusedError(found.code, found.sqlstate, found.text)
        data, behind = bytes(found[0]), found[1]
        offset = 0
        while offset < len(data):
            size = int.from_bytes(data[offset : offset + 3], "little")
            assert data[offset + 3] == sequence
            sequence = sequence + 1 & 0xFF
            payload += data[offset + 4 : offset + 4 + size]
            offset += 4 + size
            if size < PACKET_MAX:
                yield payload
                payload = b""
        assert sequence == behind


def values_of(payload: bytes, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    offset = 0
    for _ in range(count):
        if payload[offset] == lenenc.NULL:
            values.append(None)
            offset += 1
        else:
            value, offset = lenenc.decode_bytes(payload, offset)
            values.append(value)
    return values


CONSTANTS = json.loads(Path(__file__).with_suffix(".json").read_text())["constants"]
QUERIES = sql_beside(__file__)["queries"]


def random_query(rng: random.Random) -> str:
    """A SELECT with a condition over the table cond.p, ordered by its key."""
    limit = rng.choice(["", " LIMIT 5", " LIMIT 3 OFFSET 2"])
    return f"SELECT * FROM cond.p WHERE {_condition(rng, 0)} ORDER BY a, b DESC, c{limit}"


def _condition(rng: random.Random, depth: int) -> str:
    chance = rng.random()
    if depth < 3 and chance < 0.45:
        parts = [_condition(rng, depth + 1) for _ in range(rng.choice([2, 2, 3]))]
        return f"({rng.choice([' AND ', ' OR ']).join(parts)})"
    if depth < 3 and chance < 0.55:
        return f"NOT ({_condition(rng, depth + 1)})"
    column = rng.choice([*"abcabcabc", *CONSTANTS])
    constants = CONSTANTS[column]
    negation = rng.choice(["", "NOT "])
    if chance < 0.62:
        return f"{column} IS {negation}NULL"
    if chance < 0.70:
        return f"{column} {negation}IN ({', '.join(rng.choices(constants, k=rng.randint(1, 3)))})"
    if chance < 0.78 and column != "l":
        return f"{column} {negation}BETWEEN {rng.choice(constants)} AND {rng.choice(constants)}"
    sign = rng.choice(["=", "<>", "<=>"] if column == "l" else ["=", "<", ">", "<=", ">=", "<>", "<=>"])
    pair = (column, rng.choice(constants))
    return f"{pair[0]} {sign} {pair[1]}" if rng.random() < 0.85 else f"{pair[1]} {sign} {pair[0]}"


def ours_beside(server: RealServer, target: Path) -> OurTables:
    """Our reader over the closed binlog files of a server, copied to a directory."""
    return OurTables(ibbmaster.open(copy_binlogs(server, target)).engine)


def expect_rows(ours: OurTables, server: RealServer, *asked: str, session: Session = SESSIONS[0]) -> None:
    """Our answers to SELECTs have the rows of the server, in any order."""
    with RawClient.of_root(server, session) as client:
        for sql in asked:
            assert sorted(ours.answer(sql, session).rows) == sorted(client.text(sql).rows), sql


def save(folder: Path, found: Sequence[tuple[str, int, bool, Answered]]) -> None:
    """Keep answers: the statement, the number of the session, whether prepared, and the payloads."""
    data = [
        [sql, session, is_binary, [one.hex() for one in answered.columns], [one.hex() for one in answered.rows]]
        for sql, session, is_binary, answered in found
    ]
    with lzma.open(folder / "answers.json.xz", "wt", preset=9) as file:
        json.dump(data, file)


def load(folder: Path) -> list[tuple[str, int, bool, Answered]]:
    with lzma.open(folder / "answers.json.xz", "rt") as file:
        data = json.load(file)
    return [
        (sql, session, is_binary, Answered([*map(bytes.fromhex, columns)], [*map(bytes.fromhex, rows)]))
        for sql, session, is_binary, columns, rows in data
    ]


def expect_equal(ours: OurTables, asked: Sequence[tuple[str, int, bool, Answered]]) -> int:
    """Our answers are the same; how many were refused."""
    refused = 0
    snapshot = ours.snapshot()
    for sql, number, is_binary, expected in asked:
        try:
            found = ours.answer(sql, SESSIONS[number], is_binary=is_binary, snapshot=snapshot)
        except RefusedError:
            refused += 1
            continue
        assert found.columns == expected.columns, (sql, SESSIONS[number])
        name = sql.partition(" FROM ")[2].split()[0].replace("`", "")
        if _is_ordered(sql, ours.table(name, snapshot)):
            assert found.rows == expected.rows, (sql, SESSIONS[number], is_binary)
        else:
            assert sorted(found.rows) == sorted(expected.rows), (sql, SESSIONS[number], is_binary)
    return refused


def _is_ordered(sql: str, table: TableVersion) -> bool:
    """Whether the order of the rows is one that a statement asks for, or that of a clustered key."""
    return "ORDER BY" in sql or (table.primary_key is not None and table.options.get("ENGINE") == "InnoDB")
