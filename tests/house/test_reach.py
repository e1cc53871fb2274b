"""How much of the house is loaded and gone through: by an import, by a command, and by one row of an answer.

A command that looks at files, or removes some, needs nothing about rows and SQL.
"""

import ast
import json
import shutil
from pathlib import Path

import pytest

LOG = Path(__file__).parents[2] / "fixtures" / "ibb" / "domains"
PROGRAM = """
import json, sys
from ibbmaster.commands.cli.main import main
code = main(sys.argv[1:])
loaded = [one.__file__ for name, one in sys.modules.items() if name.partition(".")[0] == "ibbmaster"]
print(code, json.dumps(loaded), sep="\\n")
"""
#: Arguments behind the log, and how many modules and lines they may load.
REACH = {
    "seek": (["0-2-3"], 90, 10_500),
    "seek --time": (["--time", "2026-11-20 20:57:30Z"], 90, 10_500),
    "verify": (["--jobs", "1"], 85, 8_500),
    "purge": (["--max-total", "1T"], 110, 12_500),
    "info": ([], 170, 23_000),
}


@pytest.mark.parametrize("command", REACH)
def test_a_command_loads_what_it_needs(command, tmp_path, fresh):
    arguments, modules_max, lines_max = REACH[command]
    log = shutil.copytree(LOG, tmp_path / "log")
    *said, code, loaded = fresh(PROGRAM, command.split()[0], log, *arguments)
    modules = [Path(one) for one in json.loads(loaded)]
    lines = sum(one.read_text().count("\n") for one in modules)
    assert code == "0", said
    assert (len(modules) <= modules_max, lines <= lines_max) == (True, True), (len(modules), lines, modules)


FIXTURE = Path(__file__).parents[2] / "fixtures" / "answers" / "11.8" / "tables"
MODULES_MAX = 106
WALK = """
import importlib, pkgutil, sys
from types import SimpleNamespace
import ibbmaster
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.primary.server.tables import PrimaryTables

for room in (
    "primary.dialogue", "primary.select", "rows", "rows.expr", "tables.fold", "logs.log", "schema", "sqltext"
):
    package = importlib.import_module("ibbmaster." + room)  # what is done at an import is no part of the way
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(package.__name__ + "." + module.name)
engine, profile, entered = ibbmaster.open(sys.argv[1]).engine, PROFILES["classic-11.8"], set()
facts = SimpleNamespace(
    tables=PrimaryTables(engine), server_id=1, server_version=profile.server_version, profile=profile,
    binlog_state=engine.state, unix_timestamp=lambda: 0.0, processes=list, without_paths=lambda text: text,
)
dialog = Dialog(facts, connection_id=1, user="root", host="::1")
sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename) if event == "call" else None)
(answer,) = dialog.query(b"SELECT * FROM cond.big WHERE id = 7")
assert answer.blocks.next_block(1) is not None
sys.setprofile(None)
print(*sorted(name.partition("/ibbmaster/")[2] for name in entered if "/src/ibbmaster/" in name), sep="\\n")
"""


def test_a_row_found_by_its_key_goes_through_few_modules(tmp_path: Path, fresh) -> None:
    (tmp_path / "binlog.000001").write_bytes((FIXTURE / "binlog.000001").read_bytes())
    entered = fresh(WALK, tmp_path)
    assert "primary/select/scanning.py" in entered
    assert len(entered) <= MODULES_MAX, entered


HEAVY = {"trio", "pyspark", "numpy", "pymysql", "cryptography", "OpenSSL", "nacl", "tqdm"}

SCRIPT = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*{name.partition(".")[0] for name in sys.modules}, sep="\\n")
"""


@pytest.mark.parametrize(
    "module", ["ibbmaster", "ibbmaster.gtid", "ibbmaster.logs.log.directory", "ibbmaster.commands.cli.main"]
)
def test_importing_it_loads_nothing_heavy(module: str, fresh) -> None:
    assert not HEAVY & {*fresh(SCRIPT, module)}


@pytest.mark.parametrize("module", ["ibbmaster.replication.dump.session", "ibbmaster.replication.wire.connection"])
def test_a_dialogue_needs_no_trio(module: str, fresh) -> None:
    assert "trio" not in fresh(SCRIPT, module)


def test_a_primary_loads_what_encrypts_with_its_first_certificate(fresh) -> None:
    assert "OpenSSL" not in fresh(SCRIPT, "ibbmaster.primary.server.primary")


def test_following_needs_no_server_and_no_sql(fresh) -> None:
    loaded = fresh("import sys, ibbmaster.commands.cli.follow; print(*sys.modules, sep='\\n')")
    servers = ("trio", "ibbmaster.primary.server", "ibbmaster.primary.select", "ibbmaster.schema", "ibbmaster.sqltext")
    assert [name for name in loaded if name.startswith(servers)] == []


@pytest.mark.parametrize("name", ["page_blocks", "classic_blocks", "changed_blocks", "packet_changes"])
def test_blocks_are_framed_without_numpy(name: str, fresh) -> None:
    assert "numpy" not in fresh(SCRIPT, f"ibbmaster.primary.streaming.{name}")


REPLICA = """
import sys
from types import SimpleNamespace
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.gtid import GtidState
from ibbmaster.primary.server.tables import PrimaryTables

profile = PROFILES["engine"]
facts = SimpleNamespace(
    server_id=1, server_version=profile.server_version, profile=profile, tables=PrimaryTables(None),
    binlog_state=lambda: GtidState(), unix_timestamp=lambda: 0.0,
)
dialog = Dialog(facts, connection_id=1, user="repl", host="::1")
for sql in (
    "SELECT UNIX_TIMESTAMP()", "SHOW VARIABLES LIKE 'SERVER_ID'", "SET @master_heartbeat_period= 30000001024",
    "SET @master_binlog_checksum= @@global.binlog_checksum", "SELECT @master_binlog_checksum",
    "SELECT @@GLOBAL.binlog_storage_engine", "SET @mariadb_slave_capability=5", "SELECT @@GLOBAL.gtid_domain_id",
    "SET @slave_connect_state='0-1-1'", "SELECT VERSION()", "SELECT @@gtid_binlog_pos", "BEGIN", "COMMIT",
):
    (answer,) = dialog.query(sql.encode())
    assert not hasattr(answer, "code"), (sql, answer)
print(*(name for name in sys.modules if name.startswith(("sqlite3", "pyarrow", "ibbmaster"))), sep="\\n")
"""


def test_what_reads_tables_is_loaded_by_no_statement_of_a_replica(fresh) -> None:
    loaded = {*fresh(REPLICA)}
    assert loaded >= {"ibbmaster.primary.dialogue.dialog", "ibbmaster.primary.server.tables"}
    reading = ("ibbmaster.schema", "ibbmaster.primary.select", "sqlite3", "pyarrow")
    schema = {name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in reading)}
    assert schema <= {"ibbmaster.schema", "ibbmaster.schema.collations"}
    late = ("session_schema", "show_tables", "information_tables", "prepared")
    assert not loaded & {f"ibbmaster.primary.dialogue.{name}" for name in late}


def names_of_the_front_door(annotation: ast.expr) -> list[str]:
    return [ast.unparse(one) for one in ast.walk(annotation) if ast.unparse(one).startswith("ibbmaster.")]


def test_no_annotation_loads_the_part_of_the_package_that_it_names() -> None:
    """`ibbmaster.Log` loads what reads a log, unless the module's annotations are not evaluated."""
    found = []
    for path in (Path(__file__).parents[2] / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        if not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
            given = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
            found += [(path.name, name) for one in given if one is not None for name in names_of_the_front_door(one)]
    assert found == []
