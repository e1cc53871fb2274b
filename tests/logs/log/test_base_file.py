import os

import pytest

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.logs.log.base_file import base_position, base_rows, base_schema

DUMP = (
    "SET GLOBAL gtid_slave_pos='0-1-7';\nUSE d;\nCREATE TABLE t (id INT PRIMARY KEY);\nINSERT INTO t VALUES (1),(2);\n"
)


def test_a_dump_is_read_again_once_it_has_changed(tmp_path):
    path = tmp_path / "dump.sql"
    path.write_text(DUMP)
    assert [name.name for name in base_schema(path).catalog.tables] == ["t"]
    assert str(base_position(path)) == "0-1-7"
    assert [list(one.rows) for one in base_rows(path)] == [[("1",), ("2",)]]
    assert base_schema(path) is base_schema(path)
    path.write_text(DUMP.replace("0-1-7", "0-1-8"))
    os.utime(path, ns=(0, 0))
    assert str(base_position(path)) == "0-1-8"


def test_what_is_no_dump_of_a_position_is_one_line(tmp_path):
    path = tmp_path / "dump.sql"
    with pytest.raises(StoreError, match=r"dump\.sql: No such file or directory$"):
        base_position(path)
    path.write_text(DUMP.partition("\n")[2])
    with pytest.raises(ConfigurationError, match=r"dump\.sql: says no GTID position: mariadb-dump writes it with"):
        base_position(path)
    path.write_text("nonsense\n")
    with pytest.raises(ConfigurationError, match=r"dump\.sql: 'nonsense': expected a statement of SQL"):
        base_schema(path)
