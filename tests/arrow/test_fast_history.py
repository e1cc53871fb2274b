"""A history that kernels have collected is that of the reference, or left to it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from lanes.replay import readable_captures
from tests.table_versions import inserts, write_log

from ibbmaster.arrow import collecting
from ibbmaster.arrow.fast_history import fast_history
from ibbmaster.arrow.plan import find_versions, open_log
from ibbmaster.kernel.loading import load
from ibbmaster.log.schema_history import LoggedSchema
from ibbmaster.schema.catalog import SchemaCatalog
from ibbmaster.spark.options import parse_options

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"


def both(directory, *, is_classic=False):
    options = parse_options({"path": str(directory)}, is_classic=is_classic)
    with closing(open_log(options)) as log:
        return fast_history(log, SchemaCatalog(), load()), LoggedSchema(log).history()


@pytest.mark.parametrize("capture", [name for name in readable_captures() if "/big" not in name])
def test_the_histories_of_all_captures_are_alike(capture) -> None:
    fast, careful = both(CLASSIC / capture, is_classic=True)

    assert fast is None or [(name, fast.versions(*name)) for name in sorted(fast.names())] == [
        (name, careful.versions(*name)) for name in sorted(careful.names())
    ]


def test_groups_that_are_cut_by_batches_are_read_whole(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(collecting, "GROUPS_MAX", 1)
    rows = inserts({"id": "int"}, [(1,)])
    path = write_log(tmp_path, "CREATE TABLE t (id INT)", rows, "ALTER TABLE t ADD a INT", rows, "DROP TABLE t")
    fast, careful = both(path)

    assert fast.versions("db", "t") == careful.versions("db", "t")
    assert len(fast.versions("db", "t")) == 2


def test_temporary_tables_are_for_the_reference(tmp_path) -> None:
    fast, careful = both(write_log(tmp_path, "CREATE TEMPORARY TABLE t (id INT)", "CREATE TABLE t2 (id INT)"))

    assert fast is None
    assert list(careful.names()) == [("db", "t2")]


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
