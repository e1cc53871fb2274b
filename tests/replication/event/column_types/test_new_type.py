"""A new type of columns is a module of `replication/event/column_types`, and a line in two other files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
MADE_UP = Path(__file__).parent / "made_up"
FILES_MAX = 4  # that a new type may touch
CHANGES = {  # beside the module: what stands in a file, and what then does
    "replication/event/column_types/registry.py": (
        ("integer, labels, strings, temporal, vector\n", "integer, labels, money, strings, temporal, vector\n"),
        ("geometry, content, vector)", "geometry, content, vector, money)"),
    ),
    "replication/event/rows/column.py": (("    UUID = ", '    MONEY = "money"  # str\n    UUID = '),),
}


def test_a_made_up_type_touches_few_files_and_is_known_everywhere(tmp_path):
    package = tmp_path / "src" / "ibbmaster"
    shutil.copytree(ROOT / "src" / "ibbmaster", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MADE_UP / "money.py", package / "replication" / "event" / "column_types")
    for name, pairs in CHANGES.items():
        text = (package / name).read_text()
        for old, new in pairs:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (package / name).write_text(text)
    assert 1 + len(CHANGES) <= FILES_MAX

    ran = subprocess.run(
        [sys.executable, MADE_UP / "shown.py", tmp_path / "log"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(package.parent), str(ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["folded"] == "money"
    assert found["decoded"] == ["12.34", 8]
    assert found["arrow"] == [
        {"id": 1, "price": "12.34", "fee": "1.50"},
        {"id": 2, "price": "-0.05", "fee": "1.50"},
        {"id": 2, "price": "-0.05", "fee": "1.50"},
        {"id": 2, "price": "7.00", "fee": "2.50"},
    ]
    assert found["snapshot"] == [{"id": 1, "price": "12.34", "fee": "1.50"}, {"id": 2, "price": "7.00", "fee": "2.50"}]
    assert found["selected"] == [[1, "12.34", "1.50"], [2, "7.00", "2.50"]]
    assert found["computed"] == [["2"]]
    assert found["described"] == [["int", "int(11)"], ["money", "money"], ["money", "money"]]
    assert "`price` money NOT NULL" in found["created"][0][1]
