import random
import threading
from dataclasses import replace

import pytest

from ibbmaster.errors import BusyError, ConfigurationError, DiskFullError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.cursor import ChunkCursor
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.redo_log import SEGMENT_BYTES_MIN, scan_redo
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.storage.ibb.xa import Xid
from tests.logs.store.conftest import OvertakenLock
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.events import groups_of, gtid_of, make_event, make_gtid_event, new_group, numbers_of
from tests.machinery.life import SIMULATED
from tests.machinery.log_checker import check_log
from tests.machinery.scheduler import Scheduler
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.simulated_threads import installed
from tests.machinery.stores import SMALL_FILES, bytes_at, feed


def begin(store, size=100):
    group, event = store.open_group(), make_event(160, 1, b"p" * size)
    group.write(event)
    return group, event


def read(store, position=""):
    found = take(store.groups(store.seek(GtidPosition.parse(position))))
    names = [name for name, _ in found]
    return found[names.index(position) + 1 :] if position in names else found


def take(reader):
    return [(str(gtid), data) for gtid, data in groups_of(reader)]


def gtids(store, position=""):
    return [found for found, _ in read(store, position)]


def purge_all(store):
    result = store.purge(PurgeRequest(to_file_no=int(store.status().active_file[7:13])))
    assert result.kept is None
    return len(result.file_nos)


@pytest.fixture
def store(disk):
    with BinlogStore(disk, SMALL_FILES) as store:
        yield store


def crashed(disk):
    """What a crash leaves that takes nothing but what was never written."""
    return SimulatedDisk(disk.files())


# As mysql-test/suite/binlog_in_engine/crash_safe_slave2.test
@pytest.mark.parametrize("durability", list(Durability), ids=lambda durability: durability.name)
def test_readers_see_a_group_only_once_it_is_durable(disk, durability):
    store = BinlogStore(disk, StoreOptions(durability=durability, max_file_bytes=8 * PAGE_SIZE))
    feed(store, 1)
    status = store.status()
    assert (status.durable_lsn == status.lsn) == (durability is Durability.SYNC)
    shown = ["0-1-1"] if durability is Durability.SYNC else []
    assert ([str(gtid) for gtid in store.state()], gtids(store)) == (shown, shown)
    assert store.wait_for_growth(0), "who waits makes it durable"
    assert (str(store.state()), gtids(store)) == ("0-1-1", ["0-1-1"])
    assert not store.wait_for_growth(0)
    feed(store, 2)
    store.sync()
    assert gtids(store) == ["0-1-1", "0-1-2"]


def test_groups_in_order_become_durable_by_one_sync(store, disk):
    tickets = [store.write_direct_ordered(*new_group(number, 1)) for number in range(1, 11)]
    assert gtids(store) == []
    before = disk.writes
    store.group_commit_ordered(tickets[-1])
    assert disk.writes - before == 2  # one write, one sync
    assert len(gtids(store)) == 10


# As mysql-test/suite/binlog_in_engine/rpl_group_commit.test
def test_committers_of_many_threads_lose_nothing_and_readers_see_them_in_order(tmp_path):
    store = BinlogStore(RealDisk(tmp_path), StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=1 << 17))
    threads, each = 8, 60

    def commit(domain_id):
        for seq_no in range(1, each + 1):
            feed(store, seq_no, 40 if seq_no % 7 else 30_000, domain_id=domain_id)

    workers = [threading.Thread(target=commit, args=(number,)) for number in range(threads)]
    reader, found = store.groups(store.seek(GtidPosition())), []
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        found += take(reader)
        store.wait_for_growth(0.01)
    found += take(reader)
    for domain_id in range(threads):
        mine = [name for name, _ in found if name.startswith(f"{domain_id}-")]
        assert mine == [f"{domain_id}-1-{seq_no}" for seq_no in range(1, each + 1)]
    store.close()
    check_log(bytes_at(tmp_path))


def test_a_store_that_was_closed_takes_nothing_more(disk):
    store = BinlogStore(disk, SMALL_FILES)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        feed(store, 1)
    assert store.status().state == "closed"


# As mysql-test/suite/binlog_in_engine/rpl_oob.test
def test_large_groups_are_interleaved_over_file_borders_and_read_whole(store):
    pieces = {name: [make_event(160, 1, bytes([fill]) * 40_000) for fill in range(8)] for name in ("a", "b")}
    writers = {name: store.open_group() for name in pieces}
    for a, b in zip(pieces["a"], pieces["b"], strict=True):
        writers["a"].write(a)
        feed(store, len(gtids(store)) + 1)
        writers["b"].write(b)
    writers["b"].commit(gtid_of(9), make_gtid_event(gtid_of(9)))
    writers["a"].commit(gtid_of(10), make_gtid_event(gtid_of(10)))
    found = dict(read(store))
    assert store.status().active_file > "binlog-000003.ibb"
    for name, number in (("a", 10), ("b", 9)):
        assert found[f"0-1-{number}"] == make_gtid_event(gtid_of(number)) + b"".join(pieces[name])


# As mysql-test/suite/binlog_in_engine/savepoint.test
def test_what_comes_after_a_savepoint_can_be_taken_back(store):
    group, kept = begin(store, 30_000)
    group.savepoint("here")
    group.write(make_event(160, 1, b"x" * 50_000))
    group.savepoint("later")
    group.roll_back_to("here")
    with pytest.raises(StoreError, match="no savepoint 'later'"):
        group.roll_back_to("later")
    end = make_event(16, 1, bytes(8))
    group.write(end)
    group.commit(gtid_of(1), make_gtid_event(gtid_of(1)))
    assert read(store) == [("0-1-1", make_gtid_event(gtid_of(1)) + kept + end)]


# As mysql-test/suite/binlog_in_engine/nontrans.test
# As mysql-test/suite/binlog_in_engine/rpl_dual_cache.test
@pytest.mark.parametrize("size", [50, 60_000])
def test_the_statement_part_comes_first_and_survives_a_rollback_to_a_savepoint(store, size):
    group = store.open_group()
    group.savepoint("start")
    group.write(make_event(160, 1, b"t" * size))
    statement = make_event(160, 1, b"s" * size)
    group.write_statement(statement)
    group.roll_back_to("start")
    transaction = make_event(160, 1, b"u" * size)
    group.write(transaction)
    group.commit(gtid_of(1), make_gtid_event(gtid_of(1)))
    assert read(store) == [("0-1-1", make_gtid_event(gtid_of(1)) + statement + transaction)]


XID = Xid(format_id=1, gtrid=b"transaction", bqual=b"branch")


def prepare(store, size=50_000, **options):
    group, body = begin(store, size)
    group.prepare(XID, **options)
    return body


# As mysql-test/suite/binlog_in_engine/xa_restart.test
@pytest.mark.parametrize("is_crash", [False, True], ids=["a restart", "a crash"])
def test_a_prepared_transaction_survives_and_is_committed_files_later(disk, is_crash):
    store = BinlogStore(disk, SMALL_FILES)
    body = prepare(store)
    feed(store, range(1, 60), 9000)
    if not is_crash:
        store.close()
    with BinlogStore(crashed(disk), SMALL_FILES) as again:
        assert again.xa_recover() == [XID]
        assert again.purge(PurgeRequest(to_file_no=3)).file_nos == (), "its file is held"
        again.xa_commit(XID, gtid_of(60), make_gtid_event(gtid_of(60)))
        assert read(again, "0-1-59") == [("0-1-60", make_gtid_event(gtid_of(60)) + body)]
        again.flush()
        feed(again, 61)
        again.flush()
        assert purge_all(again) > 3


def test_a_prepared_transaction_is_rolled_back_by_its_xid_which_is_in_use_until_then(store):
    prepare(store)
    assert (gtids(store), store.xa_recover()) == ([], [XID])
    with pytest.raises(StoreError, match="in use"):
        prepare(store)
    store.xa_rollback(XID)
    assert (gtids(store), store.xa_recover()) == ([], [])
    with pytest.raises(StoreError, match="not prepared"):
        store.xa_commit(XID, gtid_of(1), make_gtid_event(gtid_of(1)))


def test_the_next_start_knows_what_is_prepared_wherever_the_redo_log_goes_on_in_its_other_segment():
    rng, disk = random.Random(random.randrange(2**32)), SimulatedDisk()
    options = replace(SMALL_FILES, redo_bytes=1 << 18)
    store, prepared, segments = BinlogStore(disk, options), [], set()
    for number in range(1, 120):
        verb = rng.choice(("feed", "feed", "feed", "feed", "prepare", "finish", "checkpoint"))
        if verb == "prepare" or (verb == "finish" and not prepared):
            prepared.append(Xid(format_id=1, gtrid=b"%d" % number, bqual=b""))
            begin(store, 3000)[0].prepare(prepared[-1])
        elif verb == "finish":
            xid = prepared.pop(rng.randrange(len(prepared)))
            if rng.random() < 0.5:
                store.xa_rollback(xid)
            else:
                store.xa_commit(xid, gtid_of(number), make_gtid_event(gtid_of(number)))
        elif verb == "feed":
            feed(store, number, 9000)
        else:
            store.checkpoint()
            store.sync()
        segments.add(scan_redo(disk).segment_lsn)
        with BinlogStore(crashed(disk), options) as again:
            assert set(again.xa_recover()) == set(prepared), (number, verb)
    assert len(segments) > 3
    store.close()


# As mysql-test/suite/binlog_in_engine/xa_innodb_crash.test
def test_a_transaction_that_other_engines_have_prepared_too_is_rolled_back_and_holds_no_file(disk):
    prepare(BinlogStore(disk, SMALL_FILES), engine_count=2)
    with BinlogStore(crashed(disk), SMALL_FILES) as again:
        assert (again.rolled_back, again.xa_recover(), gtids(again)) == (1, [], [])
        again.flush()
        feed(again, 2)
        again.flush()
        assert purge_all(again) == 2


# As mysql-test/suite/binlog_in_engine/binlog_flush_purge.test
def test_flush_cuts_the_active_file_and_begins_the_next(store):
    feed(store, 1)
    store.flush()
    feed(store, 2)
    assert [file.size for file in store.files()] == [2 * PAGE_SIZE, 8 * PAGE_SIZE, 8 * PAGE_SIZE]
    assert store.end().file_no == 1
    assert gtids(store) == ["0-1-1", "0-1-2"]


# As mysql-test/suite/binlog_in_engine/binlog_flush_purge.test
def test_a_domain_is_forgotten_once_no_file_holds_a_group_of_it(store, disk):
    feed(store, 1, domain_id=7)
    feed(store, 1)
    with pytest.raises(BusyError, match=r"gtids from the domain \('7'\) being deleted"):
        store.flush(delete_domain_ids=[7])
    store.flush()
    feed(store, 2)
    store.purge(PurgeRequest(to_file_no=1))
    store.flush(delete_domain_ids=[7])
    assert str(store.state()) == "0-1-2"
    with BinlogStore(crashed(disk), SMALL_FILES) as again:
        assert str(again.state()) == "0-1-2"
    feed(store, 3)
    assert gtids(store, "0-1-2") == ["0-1-3"]


def test_reset_begins_again_with_the_state_it_is_given_and_ends_readers(store):
    feed(store, 1)
    reader = store.groups(store.seek(GtidPosition()))
    store.reset(GtidState.parse("0-1-100"))
    with pytest.raises(PositionPurgedError, match="reset"):
        reader.next_group()
    assert store.end().file_no == 0
    feed(store, 101)
    assert gtids(store, "0-1-100") == ["0-1-101"]
    with pytest.raises(PositionPurgedError):
        store.seek(GtidPosition.parse("0-1-1"))


# As mysql-test/suite/binlog_in_engine/binlog_oob_reset_purge.test
def test_reset_is_refused_while_a_transaction_is_prepared(store):
    prepare(store)
    with pytest.raises(BusyError, match="prepared transaction"):
        store.reset()


# As mysql-test/suite/binlog_in_engine/purge_dump_thread.test
def test_purge_never_takes_what_a_reader_needs(store):
    feed(store, range(1, 60), 9000)
    reader = store.groups(store.seek(GtidPosition()))
    assert str(reader.next_group().gtid) == "0-1-1"
    result = store.purge(PurgeRequest(to_file_no=3))
    assert (result.file_nos, result.kept.split(":")[0]) == ((), "binlog-000000.ibb is in use")
    assert len(take(reader)) == 58
    assert store.purge(PurgeRequest(to_file_no=3)).file_nos == (0, 1, 2)
    with pytest.raises(PositionPurgedError):
        store.seek(GtidPosition())


def test_a_place_and_a_state_that_were_found_before_a_reset_are_none_of_the_new_log(store):
    def searched(log):
        return [log.seek(GtidPosition.parse(f"0-1-{number}")).position for number in range(0, 200, 7) if number]

    feed(store, range(1, 200), size=3000)
    old, places = searched(store), [store.seek(GtidPosition.parse("0-1-50")), store.start_of_file(1)]
    store.reset()
    feed(store, range(1, 200), size=1000)
    for place in places:
        with pytest.raises(PositionPurgedError, match="reset"):
            store.groups(place).next_group()
    assert searched(store) == searched(BinlogDirectory(store._visible, known_end=store.end)) != old


def test_a_group_that_is_being_read_when_the_log_is_reset_goes_on_with_nothing_of_the_new_one(disk):
    store = BinlogStore(disk, SMALL_FILES)
    feed(store, 1, 60_000)  # out of band
    body = store.groups(store.seek(GtidPosition())).next_group().body
    next(body)
    store.reset()
    feed(store, 1, 60_000)
    with pytest.raises(PositionPurgedError, match="reset"):
        list(body)


# As mysql-test/suite/binlog_in_engine/xa_restart2.test
def test_purge_keeps_what_a_header_of_mariadb_says_of_prepared_transactions_alone(store, monkeypatch):
    feed(store, range(1, 40), 9000)
    header = PageReader.header

    def of_mariadb(pages, file_no):
        """As after a restart: the reference for data out of band does not count a transaction prepared in file 0."""
        found = header(pages, file_no)
        return found if found is None or file_no < 3 else replace(found, oob_file_no=file_no, xa_file_no=0)

    monkeypatch.setattr(PageReader, "header", of_mariadb)
    assert store.purge(PurgeRequest(to_file_no=3)).file_nos == ()
    monkeypatch.setattr(PageReader, "header", header)
    assert store.purge(PurgeRequest(to_file_no=3)).file_nos == (0, 1, 2)


# As mysql-test/suite/binlog_in_engine/purge_dump_thread.test
def test_purge_keeps_the_file_where_the_group_begins_that_is_being_read(disk):
    store, number = BinlogStore(disk, SMALL_FILES), 0
    while store.end().file_no == 0:
        number += 1
        feed(store, number, 9000)
    reader = store.groups(store.seek(GtidPosition()))
    while (group := reader.next_group()).end.file_no == 0:
        pass
    assert group.start.file_no == 0, "a group that reaches over the border was wanted"
    feed(store, range(number + 1, number + 30), 9000)
    assert store.purge(PurgeRequest(to_file_no=1)).file_nos == ()
    assert sum(map(len, group.body)) > 9000
    reader.continue_at(reader.position, [group.gtid], is_inside_record=False)  # as a dump is that has taken a block
    assert store.purge(PurgeRequest(to_file_no=1)).file_nos == (0,)
    assert reader.next_group() is not None


@pytest.mark.parametrize("error", [DiskFullError, StoreError])
def test_whichever_call_of_a_purge_fails_who_begins_to_read_then_finds_what_the_next_start_has(error):
    kept = 0
    for wrong in range(100):
        disk = SimulatedDisk()
        store = BinlogStore(disk, SMALL_FILES)
        for seq_no in range(1, 4):
            feed(store, seq_no)
            store.flush()
        changes = iter(range(100))

        def fail(verb, name, changes=changes, wrong=wrong):
            if verb != "read" and next(changes) == wrong:
                raise error(f"{verb} {name}: planted")

        disk.fail = fail
        try:
            store.purge(PurgeRequest(to_file_no=3))
        except StoreError:
            disk.fail = lambda verb, name: None
        else:
            break  # it has made fewer changes
        with BinlogStore(crashed(disk), SMALL_FILES) as again:
            if again.files()[0].file_no == 0:  # nothing was purged
                assert take(store.groups(store.start_of_file())) == take(again.groups(again.start_of_file()))
                kept += 1
    assert 0 < kept < wrong


@pytest.mark.parametrize("is_refused_for_ever", [True, False])
def test_a_purge_that_could_not_remove_a_file_is_finished_though_checkpoints_follow(disk, is_refused_for_ever):
    """What is left of a purge has groups that need files that are gone."""
    store = BinlogStore(disk, SMALL_FILES)
    feed(store, range(1, 60), 9000)

    def refuse(verb, name):
        if verb == "unlink" and name == "binlog-000001.ibb":
            raise StoreError("planted")

    disk.fail = refuse
    with pytest.raises(StoreError, match="planted"):
        store.purge(PurgeRequest(to_file_no=3))
    assert sorted(disk.list())[:2] == ["binlog-000001.ibb", "binlog-000003.ibb"]
    for number in range(60, 90):  # more than one segment of the redo log
        feed(store, number, 9000)
        store.checkpoint()
    if not is_refused_for_ever:
        disk.fail = lambda verb, name: None
    store.close()
    assert ("binlog-000001.ibb" in disk.list()) == is_refused_for_ever
    with BinlogStore(crashed(disk), SMALL_FILES) as again:
        assert again.files()[0].name == "binlog-000003.ibb"


# As mysql-test/suite/binlog_in_engine/binlog_flush_purge.test
@pytest.mark.parametrize(
    ("limits", "replicas", "purges"),
    [
        ({"max_total_bytes": 3 * 8 * PAGE_SIZE}, 1, True),
        ({"max_total_bytes": 3 * 8 * PAGE_SIZE}, 0, False),
        ({"max_total_bytes": 3 * 8 * PAGE_SIZE, "replicas_needed_for_purge": 0}, 0, True),
        ({"expire_s": 1000.0}, 1, True),
        ({"expire_s": 1e9}, 1, False),
        ({}, 1, False),
    ],
)
def test_files_are_purged_by_age_and_size_while_enough_replicas_are_connected(disk, limits, replicas, purges):
    with BinlogStore(disk, StoreOptions(max_file_bytes=8 * PAGE_SIZE, **limits)) as store:
        store.connected_replicas = lambda: replicas
        feed(store, range(1, 60), 9000)
        store.purge_automatically(now=disk.clock + 1_000_000)
        assert (store.files()[0].name != "binlog-000000.ibb") == purges
        feed(store, 60)
        assert gtids(store, "0-1-59") == ["0-1-60"]


def test_a_log_that_another_program_wrote_is_continued(disk, long_log):
    foreign = SimulatedDisk({name: bytes(data) for name, data in long_log.disk.files.items()})
    before = [str(found) for found, _ in long_log.groups]
    with BinlogStore(foreign, SMALL_FILES) as store:
        assert store.replayed_records == 0
        feed(store, 5)
        assert gtids(store) == [*before, "0-1-5"]
    check_log(foreign.files())


def test_who_waits_for_more_goes_on_reading_when_the_disk_fails(disk):
    store = BinlogStore(disk, replace(SMALL_FILES, durability=Durability.LATER))
    feed(store, 1)
    store.sync()
    reader = store.groups(store.seek(GtidPosition()))
    feed(store, 2)
    disk.fail = DiskFailure(("sync",), 1, 99, StoreError)
    store.wait_for_growth(0.0)
    store.wait_for_growth(0.0)
    assert store.status().state == "failed"
    assert numbers_of(reader) == [1]


def test_who_waits_for_more_beside_a_disk_that_has_failed_waits_as_long_as_it_said():
    """What was appended before the failure never gets durable: to look for it again and again helps nobody."""
    scheduler, waited = Scheduler(random.Random(1)), []

    def wait():
        disk = SimulatedDisk()
        store = BinlogStore(disk, SMALL_FILES)
        store.wait_for_growth(0)  # what comes from here on is growth
        store.write_direct_ordered(*new_group(1, 1))
        disk.fail = DiskFailure(("sync",), 1, 99, StoreError)
        with pytest.raises(StoreError, match="planted"):
            store.sync()
        begun = scheduler.now
        assert not store.wait_for_growth(3.0)
        waited.append(scheduler.now - begun)

    with installed(scheduler, SIMULATED):
        scheduler.start("wait", wait)
        scheduler.run()
    assert 3 <= waited[0] < 4


def test_a_reader_that_looks_again_at_a_page_which_a_flush_has_cut_off_goes_on_in_the_next_file(disk, monkeypatch):
    """The page was empty when it looked first; where it is gone the file has ended."""
    store = BinlogStore(disk, SMALL_FILES)
    reader = store.groups(store.seek(GtidPosition()))
    feed(store, 1, 1000)
    feed(store, 2, 1000)
    first, second = (reader.next_group().end.offset for _ in range(2))
    feed(store, 3, 1000 + DATA_SIZE - second - (second - first) + PAGE_SIZE)  # to the end of its page
    assert store.end() == LogPosition.on_page(0, 2)
    assert str(reader.next_group().gtid) == "0-1-3"
    monkeypatch.setattr(store._writer.flusher, "_cut", lambda cut: None)
    store.flush()
    feed(store, 4)
    fresh_page = PageReader.fresh_page

    def cut_before(self, file_no, page_no):
        if (file_no, page_no) == (0, 3):
            disk.truncate("binlog-000000.ibb", 3 * PAGE_SIZE)
        return fresh_page(self, file_no, page_no)

    monkeypatch.setattr(PageReader, "fresh_page", cut_before)
    cursor = ChunkCursor.at(PageReader(store._visible), LogPosition.on_page(0, 3))
    assert cursor.next_chunk() is not None
    assert cursor.file_no == 1
    assert str(reader.next_group().gtid) == "0-1-4"


def test_who_waited_to_make_the_next_file_does_not_make_it_again_once_it_was_cut(store, disk):
    def others_flush():
        for seq_no in (2, 3):
            feed(store, seq_no)
            store.flush()

    feed(store, 1)
    writer = store._writer
    writer._ready = None
    writer.flusher.lock = OvertakenLock(writer.flusher.lock, before=others_flush)
    store.prepare_next_file()
    feed(store, 4)
    store.close()
    assert [group.gtid for group in check_log(disk.files()).groups] == [(0, 1, number) for number in (1, 2, 3, 4)]


# As mysql-test/suite/binlog_in_engine/purge_locking.test
def test_who_waited_to_make_the_next_file_makes_none_of_a_log_that_was_reset(store, disk):
    for _ in range(3):
        store.flush()
    writer = store._writer
    writer._ready = None
    writer.flusher.lock = OvertakenLock(writer.flusher.lock, before=store.reset)
    store.prepare_next_file()
    assert sorted(name for name in disk.list() if name.endswith(".ibb")) == ["binlog-000000.ibb", "binlog-000001.ibb"]


def test_who_begins_to_read_what_is_just_being_purged_is_told_so(store, disk):
    for seq_no in range(1, 4):
        feed(store, seq_no)
        store.flush()
    place, readers = store.seek(GtidPosition()), []

    def begin_to_read(verb, name):
        if verb == "unlink":
            readers.append(store.groups(place))

    disk.fail = begin_to_read
    assert purge_all(store) == 3
    with pytest.raises(PositionPurgedError, match=r"binlog-000000\.ibb was purged before it could be read"):
        readers[0].next_group()
    assert take(store.groups(store.start_of_file())) == []


def test_of_two_threads_that_finish_a_prepared_transaction_one_is_told_that_it_came_too_late():
    for seed in range(30):
        scheduler = Scheduler(random.Random(seed))
        with installed(scheduler, SIMULATED):
            disk = SimulatedDisk()
            disk.pause = scheduler.pause
            store = BinlogStore(disk, SMALL_FILES)
            prepare(store, 100)
            outcomes = []

            def finish(number, store=store, outcomes=outcomes):
                try:
                    store.xa_commit(XID, gtid_of(1, number), make_gtid_event(gtid_of(1, number)))
                    outcomes.append("committed")
                except StoreError:
                    outcomes.append("refused")

            for number in range(2):
                scheduler.start(f"thread {number}", lambda number=number: finish(number))
            scheduler.run()
        assert sorted(outcomes) == ["committed", "refused"], seed
        assert len(check_log(disk.files()).groups) <= 1, seed


def test_sizes_of_a_store_are_those_of_its_log():
    limits = StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=1 << 16, spill_bytes=5000).log_limits()
    assert (limits.next_file, limits.inline_size_max) == ((64, 4), 5000)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (StoreOptions(redo_bytes=2 * SEGMENT_BYTES_MIN - 1), "a redo log of .* bytes: at least"),
        (StoreOptions(max_file_bytes=1), "files of 1 bytes"),
    ],
)
def test_a_size_that_is_out_of_bounds_is_refused(options, problem):
    with pytest.raises(ConfigurationError, match=problem):
        options.log_limits()
