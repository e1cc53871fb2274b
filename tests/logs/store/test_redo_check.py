import json

import pytest

from ibbmaster.commands.cli.main import main
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_check import check_redo
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.disk import MemoryDisk
from tests.machinery.killed_writer import killed_writer
from tests.machinery.stores import bytes_at, feed

OPTIONS = StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=1 << 17, redo_bytes=4 << 20)


def test_verify_tells_what_a_killed_store_has_in_its_redo_log(tmp_path, capsys):
    killed_writer(tmp_path, 1, 156, 50)
    before = bytes_at(tmp_path)
    assert main(["verify", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "applies, 155 event groups are not in the files yet, GTID state with them [0-1-155]" in out
    assert "`ibbmaster recover DIR` brings them there" in out
    assert main(["verify", str(tmp_path), "--json"]) == 0
    redo = json.loads(capsys.readouterr().out)["redo_log"]
    assert (redo["groups"], redo["gtid_state"], redo["applies"]) == (155, "0-1-155", True)
    assert redo["bytes"] == redo["end_lsn"] - redo["first_lsn"] > 155 * 100
    assert bytes_at(tmp_path) == before
    assert main(["recover", str(tmp_path)]) == 0
    assert main(["verify", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["groups"], answer["redo_log"]["groups"]) == (155, 0)


def test_verify_tells_that_a_redo_log_does_not_apply_and_what_to_do(tmp_path, capsys):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        feed(store, range(1, 10))
    aside = tmp_path / "aside"
    aside.mkdir()
    for name in SEGMENT_NAMES:
        (tmp_path / name).rename(aside / name)
    with BinlogWriter(RealDisk(tmp_path)) as writer:
        feed(writer, range(10, 20))
    for name in SEGMENT_NAMES:
        (aside / name).rename(tmp_path / name)
    assert main(["verify", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "does not apply: the files end at" in out
    assert "`ibbmaster recover DIR --salvage NEWDIR`" in out
    assert out.endswith("1 fault\n")


@pytest.mark.parametrize("count", [1, 7, 40, 400])
def test_the_groups_that_are_in_the_redo_log_alone_are_counted(count):
    disk = MemoryDisk()
    store = BinlogStore(disk, OPTIONS)
    feed(store, range(1, 30))
    store.checkpoint()
    store.sync()
    feed(store, range(30, 30 + count))
    report = check_redo(MemoryDisk(disk.files))
    assert (report.group_count, str(report.gtid_state), report.problem) == (count, f"0-1-{29 + count}", None)
    store.write_pages()  # some of them are in the files now
    report = check_redo(MemoryDisk(disk.files))
    assert report.group_count <= count
    store.close()
    report = check_redo(MemoryDisk(disk.files))
    assert (report.group_count, report.problem) == (0, None)


def test_of_a_store_that_is_open_only_the_size_is_told(tmp_path, capsys):
    with BinlogStore(RealDisk(tmp_path), OPTIONS) as store:
        feed(store, range(1, 10))
        assert main(["verify", str(tmp_path)]) == 0
    assert "another process writes here" in capsys.readouterr().out


def test_a_reset_and_a_flush_in_the_redo_log_are_seen_through():
    disk = MemoryDisk()
    store = BinlogStore(disk, OPTIONS)
    feed(store, range(1, 30))
    store.flush()
    feed(store, range(30, 40))
    assert check_redo(MemoryDisk(disk.files)).group_count == 10
    store.reset()
    feed(store, range(1, 6))
    assert str(check_redo(MemoryDisk(disk.files)).gtid_state) == "0-1-5"


def test_where_there_is_no_redo_log_nothing_is_told(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), is_sparse=True) as writer:
        feed(writer, range(1, 3))
    assert check_redo(RealDisk(tmp_path)) is None
