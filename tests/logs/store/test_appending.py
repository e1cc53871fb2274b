import os
import signal
import subprocess
import sys

import pytest

from ibbmaster.commands.cli.main import main
from ibbmaster.errors import BusyError, GtidOrderError, StoreError
from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.series import find_series
from ibbmaster.logs.log.continuation import find_continuation
from ibbmaster.logs.store.appending import open_log
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.logs.store.xa_table import find_pending_xa
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.xa import Xid
from tests.built_logs import CLASSIC
from tests.machinery.events import groups_behind, gtid_of, make_event, make_gtid_event, new_group
from tests.machinery.stores import bytes_at, faults_at, feed, new_store, open_files

TYPES = CLASSIC / "10.11" / "types-full-crc32"
OPTIONS = StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=1 << 17, is_sparse=True)

#: A process that feeds a store with the first groups of traditional files, and is killed right behind the last of them.
KILLED_FEEDER = """
import os, signal, sys
from pathlib import Path
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.series import find_series
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.local import RealDisk

directory, classic, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
reader = ClassicReader(find_series([classic]))
options = StoreOptions(max_file_bytes=4 << 20)  # others make it ready, and read it
store = BinlogStore(RealDisk(directory), options, initial_state=reader.initial_state)
for number, group in enumerate(reader.groups(), start=1):
    store.write_direct(group.gtid, group.gtid_event, group.body)
    if number == count:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_feeder(directory, classic, count):
    process = subprocess.run([sys.executable, "-c", KILLED_FEEDER, directory, classic, str(count)], check=False)
    assert process.returncode == -signal.SIGKILL


def groups_of(directory):
    return groups_behind(open_files(directory))


@pytest.mark.parametrize("acknowledged", [1, 60])
def test_an_import_into_a_store_that_was_killed_keeps_everything_it_acknowledged(tmp_path, capsys, acknowledged):
    wanted = classic_groups()
    kill_a_feeder(tmp_path, TYPES, acknowledged)
    assert main(["convert", str(TYPES), str(tmp_path), "--append", "--max-file-size", "4M"]) == 0
    assert f"{acknowledged} groups were in the log already" in capsys.readouterr().out
    assert groups_of(tmp_path) == wanted
    assert faults_at(tmp_path) == []
    assert main(["recover", str(tmp_path)]) == 0
    assert groups_of(tmp_path) == wanted


def classic_groups():
    groups = ClassicReader(find_series([TYPES])).groups()
    return [(group.gtid, b"".join(map(bytes, (group.gtid_event, *group.body)))) for group in groups]


def test_an_import_that_is_killed_leaves_a_store_with_all_it_had(tmp_path):
    kill_a_feeder(tmp_path, TYPES, 20)
    script = """
import os, signal, sys
from ibbmaster.logs.store.binlog_store import BinlogStore
write, left = BinlogStore.write_direct_ordered, 30
def write_and_die(*args):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(*args)
BinlogStore.write_direct_ordered = write_and_die
from ibbmaster.commands.cli.main import main
main(["convert", sys.argv[1], sys.argv[2], "--append", "--max-file-size", "4M"])
"""
    process = subprocess.run([sys.executable, "-c", script, TYPES, tmp_path], check=False)
    assert process.returncode == -signal.SIGKILL
    with new_store(tmp_path, max_file_bytes=4 << 20) as store:
        assert len(list(store.state())) == 1
    found = groups_of(tmp_path)
    assert len(found) >= 20
    assert found == classic_groups()[: len(found)]


def test_beside_a_store_that_is_open_every_other_writer_is_told_that_it_is_busy(tmp_path, capsys):
    with new_store(tmp_path, max_file_bytes=4 << 20) as store:
        feed(store, 1)
        assert main(["convert", str(TYPES), str(tmp_path), "--append", "--max-file-size", "4M"]) == 2
        assert capsys.readouterr().err == f"ibbmaster: {tmp_path}: another process is writing here; end it first\n"
        with pytest.raises(BusyError):
            BinlogWriter(RealDisk(tmp_path))
        with pytest.raises(BusyError), open_log(RealDisk(tmp_path)):
            pass
        feed(store, 2)
    assert [value for value, _ in groups_of(tmp_path)] == [gtid_of(1), gtid_of(2)]


def test_beside_a_bulk_writer_every_other_writer_is_told_that_it_is_busy(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), is_sparse=True) as writer:
        feed(writer, 1)
        for make in (BinlogStore, BinlogWriter):
            with pytest.raises(BusyError):
                make(RealDisk(tmp_path))
    with BinlogWriter(RealDisk(tmp_path)) as writer:
        feed(writer, 2)
    assert [value for value, _ in groups_of(tmp_path)] == [gtid_of(1), gtid_of(2)]


def test_a_bulk_writer_that_cannot_begin_gives_the_directory_back(tmp_path):
    (tmp_path / "binlog-000000.ibb").write_bytes(b"no header" * 4000)
    disk = RealDisk(tmp_path)
    for _ in range(2):
        with pytest.raises(Exception, match="binlog-000000"):
            BinlogWriter(disk)
    assert not disk.is_locked()


def test_a_bulk_writer_leaves_a_log_with_a_redo_log_alone(tmp_path):
    with new_store(tmp_path, OPTIONS) as store:
        feed(store, 1)
    before = bytes_at(tmp_path)
    with pytest.raises(StoreError, match=r"has a redo log, .*: a BinlogStore goes on with both"):
        BinlogWriter(RealDisk(tmp_path))
    assert bytes_at(tmp_path) == before
    with open_log(RealDisk(tmp_path)) as log:
        assert log.in_bulk is None
        log.write_group(*new_group(2, make_event(160, 1, bytes(10))))
    with new_store(tmp_path, OPTIONS) as store:
        assert str(store.state()) == "0-1-2"


def test_files_written_in_bulk_keep_naming_what_a_prepared_transaction_needs(tmp_path):
    """It was prepared by another program, so that only the files tell of it."""
    xid = Xid(format_id=1, gtrid=b"waits", bqual=b"")
    with new_store(tmp_path, max_file_bytes=1 << 16, state_interval_bytes=1 << 14) as store:
        group = store.open_group()
        group.write(make_event(160, 1, bytes(50)))
        group.prepare(xid)
    for number in range(2):
        os.unlink(tmp_path / f"ibbmaster-redo-{number}")
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=1 << 16, state_interval_bytes=1 << 14) as writer:
        feed(writer, range(1, 40), 9000)
        assert writer.end.file_no > 2
    end = find_continuation(RealDisk(tmp_path))
    assert end is not None
    assert [entry.xid for entry in find_pending_xa(RealDisk(tmp_path), end)] == [xid]
    with new_store(tmp_path, OPTIONS) as store:
        assert store.xa_recover() == [xid]
        store.xa_commit(xid, gtid_of(100), make_gtid_event(gtid_of(100)))


def test_groups_out_of_order_are_refused_in_bulk_unless_it_is_told_to_take_them(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), is_sparse=True) as writer:
        feed(writer, 1)
        feed(writer, 5)
        for seq_no, server_id in ((5, 1), (2, 1), (3, 2)):
            problem = f"GTID 0-{server_id}-{seq_no} is out of order: domain 0 has .* up to 5"
            with pytest.raises(GtidOrderError, match=problem):
                feed(writer, seq_no, server_id=server_id)
        feed(writer, 1, domain_id=1)
        feed(writer, 6)
    with BinlogWriter(RealDisk(tmp_path), gtid_strict=False) as writer:
        feed(writer, 2)
    assert [str(value) for value, _ in groups_of(tmp_path)] == ["0-1-1", "0-1-5", "1-1-1", "0-1-6", "0-1-2"]
