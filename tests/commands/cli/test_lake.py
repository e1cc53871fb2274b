import json
import re
import shutil
import subprocess

import pytest
from pyarrow import parquet

import ibbmaster
from ibbmaster.commands.cli.lake import SHOWN_ROWS
from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.placing import only_writer
from ibbmaster.storage.ibb.page import PAGE_SIZE


@pytest.fixture
def snapshot(run):
    return lambda *arguments: run("lake", "snapshot", *arguments)


def test_some_rows_are_shown_and_all_are_written(snapshot, fixtures, tmp_path):
    asked = fixtures / "ibb/domains", "dom_2.t"
    assert snapshot(*asked, "--to", tmp_path / "t") == (0, "dom_2.t: 32 rows\n", "")
    assert parquet.read_table(tmp_path / "t").num_rows == 32
    assert len(snapshot(*asked)[1].splitlines()) == 1 + SHOWN_ROWS
    rows = [json.loads(line) for line in snapshot(*asked, "--json")[1].splitlines()]
    assert rows == parquet.read_table(tmp_path / "t").to_pylist()


def test_moments_do_not_say_that_they_are_in_utc(snapshot, fixtures):
    rows = snapshot(fixtures / "ibb/xa-and-ddl", "shop.parent", "--history", "--json")[1].splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", json.loads(rows[0])["_valid_from"])


def test_a_snapshot_replaces_only_what_an_earlier_one_has_written(snapshot, fixtures, tmp_path):
    target, log = tmp_path / "parent", fixtures / "ibb/xa-and-ddl"
    assert snapshot(log, "shop.parent", "--at", "0-1-20", "--to", target)[0] == 0
    before = parquet.read_table(target).num_rows
    assert snapshot(log, "shop.parent", "--to", target)[0] == 0
    assert parquet.read_table(target).num_rows != before
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]
    (target / "mine.txt").write_text("x")
    code, _, err = snapshot(log, "shop.parent", "--to", target)
    assert (code, "holds mine.txt, and no table written before" in err) == (2, True)
    assert (target / "mine.txt").exists()


def test_what_a_killed_snapshot_has_left_is_in_nobodys_way(snapshot, fixtures, tmp_path):
    target, log = tmp_path / "parent", fixtures / "ibb/xa-and-ddl"
    assert snapshot(log, "shop.parent", "--to", target)[0] == 0
    whole = parquet.read_table(target).num_rows
    (tmp_path / ".parent.new").mkdir()
    (tmp_path / ".parent.new/half.parquet").write_text("x")
    target.rename(tmp_path / ".parent.old")  # between its two renames
    assert snapshot(log, "shop.parent", "--to", target)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["parent"]
    assert parquet.read_table(target).num_rows == whole


DAMAGE = r"ibbmaster: binlog-000001\.ibb page 3 offset 0: page checksum is [0-9a-f]{8}, its bytes give [0-9a-f]{8}\n"


def test_damage_is_one_line(snapshot, fixtures, tmp_path):
    copy = shutil.copytree(fixtures / "ibb/types", tmp_path / "copy")
    with (copy / "binlog-000001.ibb").open("r+b") as file:
        file.seek(3 * PAGE_SIZE + 5000)
        byte = file.read(1)[0]
        file.seek(3 * PAGE_SIZE + 5000)
        file.write(bytes([byte ^ 4]))
    code, out, err = snapshot(copy, "types.no_pk", "--key", "a", "--to", tmp_path / "new")
    assert re.fullmatch(DAMAGE, err), err
    assert (code, out) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


def test_a_full_disk_is_one_line_and_nothing_is_left_on_it(snapshot, fixtures, small_disk):
    target, filler = small_disk / "new", small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
    found = snapshot(fixtures / "ibb/xa-and-ddl", "shop.parent", "--to", target)
    assert found == (2, "", f"ibbmaster: {target}: No space left on device\n")
    assert list(small_disk.iterdir()) == [filler]


def test_a_disk_that_is_read_only_is_named(snapshot, fixtures, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    found = snapshot(fixtures / "ibb/xa-and-ddl", "shop.parent", "--to", small_disk / "new")
    assert found == (2, "", f"ibbmaster: {small_disk / 'new'}: cannot be written: Read-only file system\n")


def test_a_second_job_in_the_same_place_stops_and_disturbs_nothing(snapshot, fixtures, monkeypatch, tmp_path):
    target, held = tmp_path / "tables", tmp_path / ".tables.new"
    arguments = fixtures / "ibb/xa-and-ddl", "shop.parent", "--to", target
    refusal = f"ibbmaster: {target}: another job writes here: wait until it has ended, or give another directory\n"
    with only_writer(held):  # as the first job has it
        (held / "table").mkdir()
        (held / "table" / "file").touch()
        with monkeypatch.context() as patch:
            patch.setattr("ibbmaster.lake.arrow_snapshots.arrow_snapshot", None)  # it stops before the log is read
            assert snapshot(*arguments) == (2, "", refusal)
        with monkeypatch.context() as patch:
            patch.setattr("ibbmaster.lake.placing.check_free", lambda place: None)  # the first came after that
            assert snapshot(*arguments) == (2, "", refusal)
        assert [path.name for path in tmp_path.rglob("*")] == [".tables.new", "table", "file"]
    shutil.rmtree(held)
    assert snapshot(*arguments)[0] == 0


def test_tables_of_an_archive_are_those_of_its_files_and_every_reader_says_so(run, fixtures, tmp_path):
    log, kept, files = fixtures / "ibb/types", (tmp_path / "kept").as_uri(), tmp_path / "files"
    assert run("archive", log, "--to", kept)[0] == 0
    for command in (("snapshot", kept, "types.ints"), ("maintain", kept, "--to", f"delta://{tmp_path}/lake")):
        code, _, err = run("lake", *command)
        assert code == 2
        assert f"{tmp_path}/kept is an archive, and tables are read from files: `ibbmaster convert" in err
    with ibbmaster.open(kept) as archive, pytest.raises(ConfigurationError, match="convert"):
        archive.snapshot("types.ints")
    assert run("convert", kept, files)[0] == 0
    shown = [run("lake", "snapshot", of, "types.ints", "--json") for of in (files, log)]
    assert shown[0] == shown[1]
    assert shown[0][1]
