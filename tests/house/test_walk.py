"""How many modules one row of an answer goes through: who follows a value need not read the whole house."""

import json
import subprocess
import sys
from pathlib import Path

FIXTURE = Path(__file__).parents[2] / "fixtures" / "answers" / "11.8" / "tables"
MODULES_MAX = 106
WALK = """
import importlib, json, pkgutil, sys
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
assert answer.blocks.next_block(1) is not None and answer.blocks.row_count == 1
sys.setprofile(None)
print(json.dumps(sorted(name.partition("/ibbmaster/")[2] for name in entered if "/src/ibbmaster/" in name)))
"""


def test_a_row_found_by_its_key_goes_through_few_modules(tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").write_bytes((FIXTURE / "binlog.000001").read_bytes())
    done = subprocess.run([sys.executable, "-c", WALK, str(tmp_path)], capture_output=True, text=True, check=True)
    entered = json.loads(done.stdout)
    assert "primary/select/scanning.py" in entered
    assert len(entered) <= MODULES_MAX, entered
