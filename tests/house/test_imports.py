"""What importing the package brings in: nothing that a part of it alone needs."""

import json
import subprocess
import sys

import pytest

HEAVY = {"trio", "pyspark", "numpy", "pymysql", "cryptography", "OpenSSL", "nacl", "tqdm"}

SCRIPT = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize(
    "module", ["ibbmaster", "ibbmaster.gtid", "ibbmaster.logs.log.directory", "ibbmaster.commands.cli.main"]
)
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    assert not HEAVY & loaded_by(module)


def test_a_dialogue_needs_no_trio() -> None:
    assert "trio" not in loaded_by("ibbmaster.replication.dump.session") | loaded_by(
        "ibbmaster.replication.wire.connection"
    )


@pytest.mark.parametrize("name", ["page_blocks", "classic_blocks", "changed_blocks", "packet_changes"])
def test_blocks_are_framed_without_numpy(name: str) -> None:
    assert "numpy" not in loaded_by(f"ibbmaster.primary.streaming.{name}")


def loaded_by(module: str) -> set[str]:
    """The top-level packages a fresh interpreter has after importing a module."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, module], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


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
print(*(name for name in sys.modules if name.startswith(("sqlite3", "pyarrow", "ibbmaster.s", "ibbmaster.primary"))))
"""


def test_what_reads_tables_is_loaded_by_no_statement_of_a_replica() -> None:
    done = subprocess.run([sys.executable, "-c", REPLICA], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded >= {"ibbmaster.primary.dialogue.dialog", "ibbmaster.primary.server.tables"}
    reading = ("ibbmaster.schema", "ibbmaster.primary.select", "sqlite3", "pyarrow")
    schema = {name for name in loaded if any(f"{name}.".startswith(f"{each}.") for each in reading)}
    assert schema <= {"ibbmaster.schema", "ibbmaster.schema.collations"}
    late = ("session_schema", "show_tables", "information_tables", "prepared")
    assert not loaded & {f"ibbmaster.primary.dialogue.{name}" for name in late}
