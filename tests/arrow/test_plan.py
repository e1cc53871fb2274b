"""What a query reads is decided by what the log holds now."""

from __future__ import annotations

from ibbmaster.arrow.plan import find_fields, find_versions, maps_backwards
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.spark.options import parse_options
from tests.table_versions import write_log
from tests.written_log import inserted
from tests.written_log import write_log as write_groups


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


def test_a_table_that_was_last_written_long_ago_is_found_in_any_file(tmp_path) -> None:
    """Files are looked through from the end: one, then two, then four at once, each of them once."""
    old, new = (
        written_table(f"d.{name}", {"id": "int", "a": "mediumtext"}, table_id=number)
        for number, name in enumerate("tu")
    )
    log = write_groups(
        tmp_path / "log", [inserted(old, [1, "x"])], *([inserted(new, [1, "x" * 200_000])] for _ in range(60))
    )
    assert len(list(log.glob("*.ibb"))) > 8
    assert [one.name for one in find_fields(parse_options({"path": str(log), "table": "d.t"}))[-2:]] == ["id", "a"]
    options = parse_options({"path": str(log)})
    places = [seen.place for part in maps_backwards(options, []) for seen in part]
    files = [place.position.file_no for place in places]
    assert files == sorted(files, reverse=True)
    assert len(places) == len(set(places)) == len(set(files)) + 1  # the first file has both tables
