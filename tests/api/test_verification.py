"""What commands verify is what `Log.verify` does, without what reads rows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.verification import LogVerification
from ibbmaster.cli.verify import opened_files
from ibbmaster.errors import ConfigurationError, StoreError

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = {"ibb files": FIXTURES / "ibb" / "domains", "traditional files": FIXTURES / "classic" / "10.11" / "domains"}
MODULES = """
import json, sys
from ibbmaster.cli.main import main
main(["verify", sys.argv[1]])
print(json.dumps(sorted(sys.modules)))
"""


def verified(path):
    with opened_files(path) as files:
        check = LogVerification(path, files, jobs=1, on_bytes=lambda count: None)
        return [str(fault) for fault in check], check.totals, sum(one.stat().st_size for one in files.paths())


@pytest.mark.parametrize("path", LOGS.values(), ids=LOGS)
def test_files_without_a_log_around_them_have_the_faults_that_the_log_has(tmp_path, path):
    copy = tmp_path / "log"
    shutil.copytree(path, copy)
    changed = max(copy.iterdir(), key=lambda one: one.stat().st_size if one.suffix != ".index" else 0)
    data = bytearray(changed.read_bytes())
    data[-200_000 if len(data) > 300_000 else -300] ^= 1
    changed.write_bytes(data)
    size = sum(one.stat().st_size for one in copy.iterdir() if one.name.startswith("binlog"))
    with ibbmaster.open(copy) as log:
        check = log.verify()
        faults = [str(fault) for fault in check]
        assert verified(copy) == (faults, check.totals, size)
    assert faults


@pytest.mark.parametrize("path", LOGS.values(), ids=LOGS)
def test_the_command_loads_nothing_that_reads_rows_or_sql(path):
    done = subprocess.run([sys.executable, "-c", MODULES, path], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    for room in ("schema", "event.column_types", "stages", "sqltext", "lake", "arrow", "server", "dump"):
        assert not [name for name in loaded if name.startswith(f"ibbmaster.{room}")], room
    assert not {"numpy", "llvmlite", "numba", "trio"} & set(loaded)  # for so little


def test_what_is_no_log_is_refused_as_where_a_log_is_opened(tmp_path):
    with pytest.raises(StoreError, match="no such file or directory"), opened_files(tmp_path / "missing") as files:
        files.paths()
    with (
        pytest.raises(ConfigurationError, match=r"verify reads whole logs, and .*/binlog-000000.ibb is one file"),
        opened_files(LOGS["ibb files"] / "binlog-000000.ibb"),
    ):
        pass
    (tmp_path / "text.000001").write_text("no binlog")
    with pytest.raises(ibbmaster.IbbMasterError, match=r"text\.000001"), opened_files(tmp_path / "text.000001"):
        pass
