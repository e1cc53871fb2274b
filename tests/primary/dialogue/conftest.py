"""A primary to ask."""

import dataclasses
import os
import random
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.primary.dialogue.evaluating import Evaluator, Who
from ibbmaster.primary.dialogue.log_tables import BinlogEventRow, LogSnapshot, ProcessRow, TableQuery
from ibbmaster.primary.dialogue.session_schema import SessionSchema, own_databases
from ibbmaster.primary.dialogue.settings import Settings, UserVariables
from ibbmaster.primary.select.engine import QueryRun
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, UnknownTable


class Tables:
    """The tables of a log: `catalogs` by the GTID position from which they are so, the newest last."""

    def __init__(self, *catalogs: tuple[str, SchemaCatalog]) -> None:
        self.catalogs = list(catalogs) or [("", SchemaCatalog())]
        self.queries: list[TableQuery] = []

    def newest(self):
        state = GtidState.parse("0-1-7,0-2-8,3-1-1")
        return LogSnapshot(end=LogPosition(1, 16640), file_name="binlog-000001.ibb", state=state)

    def snapshot_at(self, position):
        if str(position) not in dict(self.catalogs):
            raise RefusedError(1945, "HY000", f"{position} is not in this log")
        return LogSnapshot(end=LogPosition(0, 500), file_name="binlog-000000.ibb", state=GtidState.parse(str(position)))

    def catalog(self, snapshot):
        return dict(self.catalogs).get(str(snapshot.position), self.catalogs[-1][1])

    def name_case(self):
        return 0

    def compute(self, query):
        self.queries.append(query)
        return QueryRun(query, _no_rows).answer()

    def computed_columns(self, query):
        return QueryRun(query, _no_rows).columns()


def grow(tables, gtid: str = "0-1-9") -> None:
    """One more group is logged."""
    newest = tables.newest()
    state = newest.state.copy()
    state.log(Gtid.parse(gtid))
    tables.newest = lambda: LogSnapshot(end=LogPosition(1, 20000), file_name=newest.file_name, state=state)


def _no_rows(table, column_ids, wanted):
    raise not_supported(f"rows of {table.full_name} here")


def catalog_of(*statements: str) -> SchemaCatalog:
    """What there is behind these statements, each in a group of its own."""
    history = SchemaHistory()
    for number, text in enumerate(statements, 1):
        statement = LoggedStatement(text, "shop", 1, 0, has_effect=True)
        history.add(SchemaPlace(LogPosition(0, number), 1), f"0-1-{number}", 0, statement)
    return history.at()


class Facts(SimpleNamespace):
    """A primary with two files, one replica and two connections."""

    def binlog_state(self):
        return GtidState.parse("0-1-7,0-2-8,3-1-1")

    def binlog_end(self):
        return "binlog-000001.ibb", 16640

    def binary_logs(self):
        return [("binlog-000000.ibb", 65536), ("binlog-000001.ibb", 1073741824)]

    def binlog_events(self, file_name, offset):
        if file_name not in (None, "binlog-000000.ibb"):
            raise KeyError(file_name)
        row = BinlogEventRow(file_name="binlog-000000.ibb", event_type="Gtid", server_id=1, info="GTID 0-1-1")
        return iter([row] * 5)

    def gtid_position_at(self, file_name, offset):
        return {("binlog.000001", 4): "", ("binlog.000001", 500): "0-1-5"}.get((file_name, offset))

    def replica_hosts(self):
        return [(2, "replica.example", 3306)]

    def processes(self):
        row = ProcessRow(connection_id=7, user="repl", host="::1", command="Query", seconds=0, state="")
        return [row, dataclasses.replace(row, connection_id=8), *getattr(self, "others", [])]

    def unix_timestamp(self):
        return 1778384896.5

    def status(self):
        return {"Access_denied_errors": 3, "Threads_connected": len(self.processes()), "Uptime": 60}

    def without_paths(self, text):
        return text


@pytest.fixture
def new_facts() -> Callable[..., Facts]:
    def make(profile: str = "engine", **facts: object) -> Facts:
        known = {"profile": PROFILES[profile], "server_version": PROFILES[profile].server_version, "server_id": 1}
        return Facts(**{**known, "tables": Tables(), **facts})

    return make


@pytest.fixture
def new_evaluator(new_facts: Callable[..., Facts]) -> Callable[..., Evaluator]:
    def make(profile: str = "classic-10.11", **facts: object) -> Evaluator:
        known = new_facts(profile, **facts)
        evaluator = Evaluator(known, Settings(known), UserVariables(), Who(connection_id=7, user="repl", host="::1"))
        evaluator.begin_statement()
        return evaluator

    return make


@pytest.fixture
def new_catalog() -> Callable[..., SchemaCatalog]:
    return catalog_of


@pytest.fixture
def shop() -> Tables:
    """A database of a shop, as it is now and as it was at 0-1-2; nobody knows the columns of one table."""
    first = (
        "CREATE DATABASE shop CHARACTER SET latin1 COMMENT 'c'",
        "CREATE TABLE shop.item (id int PRIMARY KEY, name varchar(20))",
    )
    now = (
        *first,
        "ALTER TABLE shop.item ADD price decimal(10,2) NOT NULL, ADD secret int INVISIBLE, ADD KEY n (name)",
        "CREATE TABLE shop.sold (item int, n int, CONSTRAINT f FOREIGN KEY (item) REFERENCES item (id))",
        "CREATE VIEW shop.all_items AS SELECT id FROM item",
        "CREATE SEQUENCE shop.numbers START 5",
        "CREATE VIEW shop.counted AS SELECT COUNT(*) FROM item",
    )
    newest = catalog_of(*now)
    lost = UnknownTable(database="shop", name="lost", since=None, gtid="0-1-1", reason="shop.lost: give --schema")
    tables = MappingProxyType({**newest.tables, ("shop", "lost"): lost})
    return Tables(("0-1-2", catalog_of(*first)), ("", dataclasses.replace(newest, tables=tables)))


@pytest.fixture
def new_schema() -> Callable[..., SessionSchema]:
    def make(facts: Facts, held: frozenset[str] = privileges.READING) -> SessionSchema:
        return SessionSchema(facts.tables.catalog(facts.tables.newest()), held, own_databases(Settings(facts)))

    return make


@pytest.fixture
def new_dialog(new_facts: Callable[..., Facts]) -> Callable[..., Dialog]:
    def make(profile: str = "engine", **facts: object) -> Dialog:
        return Dialog(new_facts(profile, **facts), connection_id=7, user="repl", host="127.0.0.1")

    return make


@pytest.fixture
def dialog(new_dialog: Callable[..., Dialog]) -> Dialog:
    return new_dialog()


@pytest.fixture
def shopping(new_dialog: Callable[..., Dialog], shop: Tables) -> Dialog:
    return new_dialog("classic-11.8", tables=shop)


@pytest.fixture
def rng() -> random.Random:
    """Random numbers; a failing test shows the seed, and DIALOGUE_TEST_SEED=<seed> brings the failure back."""
    seed = int(os.environ.get("DIALOGUE_TEST_SEED") or random.randrange(2**32))
    print(f"DIALOGUE_TEST_SEED={seed}")
    return random.Random(seed)


def refused(call, *arguments, **options) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        call(*arguments, **options)
    return caught.value.err.code, caught.value.err.text
