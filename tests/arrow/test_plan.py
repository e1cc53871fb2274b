"""What a query reads is decided by what the log holds now."""

from __future__ import annotations

from ibbmaster.arrow.plan import find_versions
from ibbmaster.spark.options import parse_options
from tests.table_versions import write_log


def test_a_log_that_grew_or_is_another_one_is_folded_anew(tmp_path) -> None:
    options = parse_options({"path": str(tmp_path)})
    write_log(tmp_path, "CREATE TABLE t (id INT)")
    assert len(find_versions(options).of("db", "t")) == 1
    write_log(tmp_path, "ALTER TABLE t ADD a INT", first=2)
    assert len(find_versions(options).of("db", "t")) == 2
    for path in tmp_path.iterdir():
        path.unlink()
    write_log(tmp_path, "CREATE TABLE u (id INT)")
    assert not find_versions(options).of("db", "t")
