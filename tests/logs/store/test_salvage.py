import json
import random
import signal
import subprocess
import sys

import pytest

from ibbmaster.commands.cli.main import main
from ibbmaster.errors import DamageError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.salvage import salvage
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from ibbmaster.storage.ibb.xa import Xid
from tests.damage import flip
from tests.logs.store.conftest import flipped
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import groups_behind, groups_of, gtid_of, make_event, make_gtid_event, numbers_in
from tests.machinery.stores import SMALL_FILES, bytes_at, faults_at, feed, new_store, open_files


def groups_in(disk):
    log = open_files(disk)
    return groups_of(log.groups(log.start_of_file()))


def numbers(disk):
    return numbers_in(open_files(disk))


def salvaged(files):
    source, target, conflicts = MemoryDisk(files), MemoryDisk(), MemoryDisk()
    report = salvage(source, target, lambda: conflicts)
    assert source.files == {name: bytearray(content) for name, content in files.items()}
    assert faults_at(target) == []
    return target, conflicts, report


def in_files(report):
    """The losses that have a place; whether a transaction is prepared cannot be told of every damaged log."""
    return [loss for loss in report.losses if loss.file_name is not None]


def snapshot(disk):
    return {name: bytes(content) for name, content in disk.files.items()}


@pytest.fixture
def closed():
    return log_of(60)


def log_of(count):
    disk = MemoryDisk()
    with new_store(disk, SMALL_FILES) as store:
        feed(store, range(1, count + 1), 3300)
    return {name: content for name, content in snapshot(disk).items() if name not in SEGMENT_NAMES}


def crashed():
    """What a killed store leaves: ten groups in the files, twenty more in the redo log."""
    disk = MemoryDisk()
    store = new_store(disk, SMALL_FILES)
    feed(store, range(1, 11), 3300)
    store.checkpoint()
    store.sync()
    feed(store, range(11, 31), 3300)
    return snapshot(disk)


def with_an_import_over_it(files, first, last, fill=0):
    """As a writer did that neither locked the directory nor knew the redo log."""
    disk = MemoryDisk({name: content for name, content in files.items() if name not in SEGMENT_NAMES})
    with BinlogWriter(disk, max_file_bytes=8 * PAGE_SIZE, state_interval_bytes=2 * PAGE_SIZE) as writer:
        feed(writer, range(first, last + 1), 3300, fill=fill)
    return snapshot(disk) | {name: files[name] for name in SEGMENT_NAMES}


def flushed():
    disk = MemoryDisk()
    with new_store(disk, SMALL_FILES) as store:
        for first in range(1, 60, 4):
            feed(store, range(first, first + 4), 3300)
            store.flush()
    return snapshot(disk)


@pytest.mark.parametrize("files", [lambda: log_of(60), flushed, crashed], ids=["closed", "flushed", "crashed"])
def test_a_sound_log_comes_out_as_it_was(files):
    target, _, report = salvaged(files())
    with new_store(MemoryDisk(files()), SMALL_FILES) as store:
        expected = groups_behind(store)
        assert (groups_in(target), report.gtid_state) == (expected, store.state())
    assert (report.group_count, report.losses, report.duplicates) == (len(expected), [], 0)


def test_a_redo_log_that_still_cuts_and_changes_a_purged_file_is_applied():
    disk = MemoryDisk()
    store = new_store(disk, SMALL_FILES)
    feed(store, range(1, 5), 3300)
    store.flush()
    feed(store, range(5, 9), 3300)
    store.purge(PurgeRequest(to_file_no=1))
    feed(store, range(9, 12), 3300)
    target, _, report = salvaged(snapshot(disk))
    assert (numbers(target)[-7:], report.losses) == (list(range(5, 12)), [])


def test_the_same_groups_written_over_those_of_the_redo_log_come_out_once():
    """The files go on at 11 again, with the same groups and more."""
    files = with_an_import_over_it(crashed(), 11, 45)
    with pytest.raises(DamageError, match="ibbmaster recover DIR --salvage NEWDIR"):
        new_store(MemoryDisk(files), SMALL_FILES)
    target, conflicts, report = salvaged(files)
    assert numbers(target) == list(range(1, 46))
    assert (report.losses, report.conflict_count, conflicts.files) == ([], 0, {})


def test_other_groups_written_over_those_of_the_redo_log_are_put_aside():
    target, conflicts, report = salvaged(with_an_import_over_it(crashed(), 11, 45, fill=100))
    assert numbers(target) == list(range(1, 46))
    assert groups_in(target)[:30] == groups_in(salvaged(crashed())[0])
    assert numbers(conflicts) == list(range(11, 31))
    assert report.conflict_count == len(report.losses) == 20
    assert str(report.losses[0]).endswith(
        "group 0-1-11: the redo log has other groups that are as new, so it is in the log of conflicts"
    )


def test_files_that_went_on_behind_a_redo_log_that_was_closed_come_out_whole():
    disk = MemoryDisk()
    with new_store(disk, SMALL_FILES) as store:
        feed(store, range(1, 31), 3300)
    files = with_an_import_over_it(snapshot(disk), 31, 70)
    with pytest.raises(DamageError, match=r"the files end at .*, and the redo log at"):
        new_store(MemoryDisk(files), SMALL_FILES)
    target, _, report = salvaged(files)
    assert numbers(target) == list(range(1, 71))
    assert report.losses == []


def test_a_redo_log_of_other_files_comes_last(closed):
    other = MemoryDisk()
    with new_store(other, SMALL_FILES) as store:
        feed(store, range(1, 200), 3000, domain_id=5)
    killed = MemoryDisk(snapshot(other))
    store = new_store(killed, SMALL_FILES)
    feed(store, range(200, 210), 3000, domain_id=5)
    files = closed | {name: snapshot(killed)[name] for name in SEGMENT_NAMES}
    with pytest.raises(StoreError):
        new_store(MemoryDisk(files), SMALL_FILES)
    target, _, report = salvaged(files)
    found = [str(value) for value, _ in groups_in(target)]
    assert found[:60] == [f"0-1-{number}" for number in range(1, 61)]
    assert found[-10:] == [f"5-1-{number}" for number in range(200, 210)]
    assert len(set(found)) == len(found)
    assert "the redo log does not apply" in str(report.losses[0])


LEAD = [15_000] * 7  # groups that fill most of a file
LEFT = 8_900  # bytes for an event after them
STEPS = {60: 1, 3300: 173, 40_000: 499}  # size of groups -> bytes by which they move from case to case


@pytest.mark.parametrize("checkpoints", [(), (2,)], ids=["no checkpoint", "a checkpoint"])
@pytest.mark.parametrize("size", STEPS)
def test_all_that_a_redo_log_of_other_files_has_comes_wherever_a_file_ends_in_it(size, checkpoints):
    """Also what its writer had brought to the files, which are not there: as far as the redo log still has it."""
    kept, begins, room = log_of(1), set(), min(size, LEFT - 200) + 60
    for shift in range(0, room, STEPS[size]):
        disk = MemoryDisk()
        store = new_store(disk, SMALL_FILES)
        for number, each in enumerate([*LEAD, LEFT - room + shift, *[size] * 4], 1):
            before = store.end()
            feed(store, [number], each, domain_id=5)
            if (before.file_no, store.end().file_no) == (0, 1):
                begins.add(before.page_offset)
            if number - len(LEAD) in checkpoints:
                store.checkpoint()
                store.sync()
        target, conflicts, report = salvaged(kept | {name: snapshot(disk)[name] for name in SEGMENT_NAMES})
        found = groups_in(target)
        own = [group for group in found if group[0] == gtid_of(1)]
        assert [group for group in found if group not in own] == groups_behind(store), shift
        assert (len(own), conflicts.files, report.conflict_count) == (1, {}, 0)
    assert len(begins) > room / STEPS[size] * 0.8  # of the group in which the file ends


def test_a_damaged_page_costs_its_own_groups_and_is_named(closed):
    name = "binlog-000001.ibb"
    target, _, report = salvaged(flipped(closed, name, 3 * PAGE_SIZE + 100))
    lost = sorted(set(range(1, 61)) - set(numbers(target)))
    assert 4 <= len(lost) <= 7
    assert lost == list(range(lost[0], lost[-1] + 1))
    (loss,) = in_files(report)
    assert (loss.file_name, loss.first_page, loss.last_page) == (name, 3, 3)
    assert "checksum" in loss.reason
    assert (loss.after, loss.before) == (f"0-1-{lost[0] - 1}", f"0-1-{lost[-1] + 1}")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda page: bytes(PAGE_SIZE), "zero|no data|without its end|nothing"),
        (lambda page: random.Random(1).randbytes(PAGE_SIZE), "checksum"),
    ],
    ids=["zeros", "noise"],
)
@pytest.mark.parametrize("pages", [range(2, 3), range(3, 6)], ids=["one page", "three pages"])
def test_pages_in_the_middle_are_passed_over(closed, damage, reason, pages):
    name = "binlog-000000.ibb"
    data = bytearray(closed[name])
    for page_no in pages:
        data[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = damage(data)
    target, _, report = salvaged(closed | {name: bytes(data)})
    found = numbers(target)
    assert found == sorted(set(found))
    assert found[0] == 1
    assert found[-1] == 60
    lost = sorted({*range(1, 61)} - {*found})
    assert lost == list(range(lost[0], lost[-1] + 1))  # also what goes on in the next file is there
    assert len(lost) <= 7 * len(pages)
    assert set(pages) <= {page for loss in report.losses for page in range(loss.first_page, loss.last_page + 1)}


def test_a_file_that_is_missing_is_named():
    files = {name: content for name, content in log_of(100).items() if name != "binlog-000001.ibb"}
    target, _, report = salvaged(files)
    found = numbers(target)
    assert (found[0], found[-1]) == (1, 100)
    assert "binlog-000001.ibb is missing" in [loss.reason for loss in report.losses]


def test_a_damaged_header_costs_one_group_and_the_state_before_the_oldest_file_is_kept(closed):
    name = "binlog-000001.ibb"
    target, _, report = salvaged(closed | {name: b"\1" * PAGE_SIZE + closed[name][PAGE_SIZE:]})
    assert len(numbers(target)) == 59
    assert numbers(target)[-1] == 60
    assert [(loss.file_name, loss.first_page) for loss in in_files(report)] == [(name, 0)]
    target, _, _ = salvaged({name: content for name, content in closed.items() if name != "binlog-000000.ibb"})
    assert open_files(target).start_of_file().state == GtidState([gtid_of(numbers(target)[0] - 1)])


def test_a_record_that_makes_no_sense_costs_itself_alone(closed):
    name = "binlog-000000.ibb"
    data = bytearray(closed[name])
    place = data.index(make_gtid_event(gtid_of(3)))
    data[place + 4] = 99  # the type of the event that must be a GTID event
    page_no = place // PAGE_SIZE
    page = data[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE]
    seal_page(page)
    data[page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = page
    target, _, report = salvaged(closed | {name: bytes(data)})
    assert numbers(target) == [1, 2, *range(4, 61)]
    (loss,) = in_files(report)
    assert "the first event has type 99" in loss.reason
    assert (loss.after, loss.before) == ("0-1-2", "0-1-4")


def test_a_group_whose_part_out_of_band_is_damaged_is_named():
    disk = MemoryDisk()
    with new_store(disk, max_file_bytes=64 * PAGE_SIZE, spill_bytes=100, oob_piece_bytes=20_000) as store:
        feed(store, range(1, 6), size=60_000)
    files = {name: content for name, content in snapshot(disk).items() if name not in SEGMENT_NAMES}
    target, _, report = salvaged(flipped(files, "binlog-000000.ibb", 6 * PAGE_SIZE + 9))
    assert numbers(target) == [1, 3, 4, 5]
    assert "0-1-2" in [loss.gtid for loss in report.losses]


def test_prepared_transactions_wait_in_the_new_log():
    disk = MemoryDisk()
    store = new_store(disk, SMALL_FILES)
    xid = Xid(format_id=1, gtrid=b"waits", bqual=b"")
    feed(store, range(1, 4))
    group = store.open_group()
    group.write(make_event(160, 1, bytes(9000)))
    group.prepare(xid)
    target, _, report = salvaged(snapshot(disk))
    assert (report.prepared_count, report.losses) == (1, [])
    with new_store(target, SMALL_FILES) as store:
        assert store.xa_recover() == [xid]
        store.xa_commit(xid, gtid_of(4), make_gtid_event(gtid_of(4)))
    assert numbers(target) == [1, 2, 3, 4]


def in_directory(tmp_path, files):
    (tmp_path / "log").mkdir()
    for name, content in files.items():
        (tmp_path / "log" / name).write_bytes(content)
    return tmp_path / "log"


def test_the_command_says_what_is_lost_and_its_end_tells_it(tmp_path, capsys, closed):
    source, new = in_directory(tmp_path, closed), tmp_path / "new"
    assert main(["recover", str(source), "--salvage", str(new)]) == 0
    assert capsys.readouterr().out == f"60 event groups written to {new}, GTID state [0-1-60]\nnothing is lost\n"
    assert main(["recover", "--salvage", str(new), str(source)]) == 2
    assert "is not empty" in capsys.readouterr().err
    flip(source / "binlog-000001.ibb", 3 * PAGE_SIZE + 100)
    assert main(["recover", str(source), "--salvage", str(tmp_path / "second"), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["lost"][0]["file"], answer["lost"][0]["pages"]) == ("binlog-000001.ibb", [3, 3])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "new", "second"]


def test_a_salvage_that_is_killed_leaves_nothing_under_the_new_name(tmp_path, closed):
    source = in_directory(tmp_path, closed)
    script = """
import os, signal, sys
from ibbmaster.logs.store.writer import BinlogWriter
BinlogWriter.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)
from ibbmaster.commands.cli.main import main
main(["recover", sys.argv[1], "--salvage", sys.argv[2]])
"""
    new = tmp_path / "new"
    assert subprocess.run([sys.executable, "-c", script, source, new], check=False).returncode == -signal.SIGKILL
    assert not new.exists()
    assert bytes_at(source) == closed
    assert main(["recover", str(source), "--salvage", str(new)]) == 0
