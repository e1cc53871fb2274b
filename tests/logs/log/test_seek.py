import random

import pytest

from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.seek import seek
from ibbmaster.logs.log.states import FULL_STATE_PAGE, read_state_record, state_at
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.chunk import RecordType, encode_chunk
from ibbmaster.storage.ibb.gtid_state import encode_gtid_state
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.built_logs import header_of, sealed_page
from tests.machinery.events import groups_of

# What the format description says of its example with three files.
VECTOR = {
    "nothing": ("", 0, 1, ""),
    "in the first file": ("0-1-2", 0, 2, "0-1-1"),
    "equal to the state of the second file": ("0-1-2,1-2-1", 1, 1, "0-1-2,1-2-1"),
    "equal to the state of the third file": ("0-1-3,1-2-1", 2, 1, "0-1-3,1-2-1"),
    "equal to a differential state": ("0-1-1", 0, 2, "0-1-1"),
}


@pytest.mark.parametrize(("position", "file_no", "page_no", "state"), VECTOR.values(), ids=VECTOR)
def test_the_example_of_the_format(long_log, position, file_no, page_no, state):
    plan = BinlogDirectory(long_log.disk).seek(GtidPosition.parse(position))
    assert (plan.position.file_no, plan.position.page_no, plan.state) == (file_no, page_no, GtidState.parse(state))


def test_a_plan_explains_itself(long_log):
    plan = BinlogDirectory(long_log.disk).seek(GtidPosition.parse("0-1-2"))
    assert plan.lines()[0] == "position [0-1-2]"
    assert "  binlog-000001.ibb page 1: state [0-1-2,1-2-1] has more than the replica" in plan.lines()
    assert plan.lines()[-1].startswith("start at binlog-000000.ibb page 2, state [0-1-1]; ")


def test_a_position_before_the_oldest_file_is_refused_with_the_domain_and_the_file(new_log, event):
    log = new_log(state="0-1-100,7-1-5", first_file_no=3)
    log.commit("0-1-101", event(50))
    directory = BinlogDirectory(log.disk)
    with pytest.raises(
        PositionPurgedError,
        match=r"domain 0: the replica has 0-1-99, binlog-000003\.ibb begins after 0-1-100; "
        r"domain 7: the replica has nothing, binlog-000003\.ibb begins after 7-1-5",
    ):
        directory.seek(GtidPosition.parse("0-1-99"))
    assert directory.seek(GtidPosition.parse("0-1-100,7-1-5")).position.file_no == 3


def linear_seek(disk, position, numbers):
    """The search as the format describes it: files from the newest down, then pages; slow and obvious."""
    pages = PageReader(disk)
    for file_no in reversed(numbers):
        full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        if full is None or not GtidState(full.gtids).is_before(position):
            continue
        best = (file_no, FULL_STATE_PAGE, GtidState(full.gtids))
        header = pages.header(file_no)
        for page_no in range(header.state_interval_pages, header.size_pages, header.state_interval_pages):
            record = read_state_record(pages, file_no, page_no) if page_no > FULL_STATE_PAGE else None
            if record is not None and (state := state_at(GtidState(full.gtids), record)).is_before(position):
                best = (file_no, page_no, state)
        return best
    return None


@pytest.fixture(params=[True, False], ids=["few states walked", "few states halved, too"])
def states_walked(request, monkeypatch):
    """Small files have few states, all of which are looked at; their search is to be right for the large ones, too."""
    if not request.param:
        monkeypatch.setattr("ibbmaster.logs.log.seek.WALKED_STATES_MAX", 0)


# As mysql-test/suite/binlog_in_engine/rpl_gtid_index.test
@pytest.mark.usefixtures("states_walked")
@pytest.mark.parametrize("seed", range(30))
def test_the_search_finds_what_a_linear_one_finds_and_reading_on_misses_nothing(new_log, event, seed):
    random_source = random.Random(seed)
    log = new_log(size_pages=random_source.choice((4, 7, 16)), interval_pages=random_source.choice((1, 2, 4)))
    seq_no = dict.fromkeys(range(random_source.randint(1, 4)), 0)
    for _ in range(random_source.randint(20, 120)):
        domain_id = random_source.choice(list(seq_no))
        seq_no[domain_id] += random_source.choice((1, 1, 1, 5))
        gtid = f"{domain_id}-{random_source.randint(1, 3)}-{seq_no[domain_id]}"
        log.commit(gtid, event(random_source.randint(20, 9000)))
    directory = BinlogDirectory(log.disk)
    numbers = directory.file_numbers()
    assert directory.state() == GtidState(gtid for gtid, _ in log.groups)
    for end in range(0, len(log.groups) + 1, 7):
        position = GtidState(gtid for gtid, _ in log.groups[:end]).position()
        plan = directory.seek(position)
        assert (plan.position.file_no, plan.position.page_no, plan.state) == linear_seek(log.disk, position, numbers)
        rest = read_from(directory, plan)
        assert rest[-len(log.groups[end:]) :] == [gtid for gtid, _ in log.groups[end:]] or end == len(log.groups)
        assert GtidState([*plan.state, *rest]) == directory.state()


class LogOfVanishingDomains:
    """A random log that is flushed, purged and told to forget domains, as MariaDB allows it.

    A domain may be deleted only while no file holds groups of it. If it `counts_anew` its
    numbers begin again with 1 then, as on a primary; else they go on, as those a replica logs.
    """

    def __init__(self, log, event, random_source, *, counts_anew):
        self.counts_anew = counts_anew
        self.log = log
        self.file_nos: list[tuple[int, Gtid]] = []  # where each group's commit record begins
        self.states = {0: GtidState()}  # what each file begins after, as the groups have it
        self.oldest = 0
        self._event, self._random = event, random_source
        self._seq_no: dict[int, int] = {}
        self._state = GtidState()
        self._busy = [0, 1, 2, 3]  # domains that are written in at the time
        for _ in range(random_source.randint(60, 200)):
            self._step()

    def _step(self):
        rng = self._random.random()
        if rng < 0.6:
            self._commit(self._random.choice(self._busy))
        elif rng < 0.75:
            self._flush(None)
        elif rng < 0.93:
            unused = [
                domain_id
                for domain_id in self._state.domain_ids
                if self._state.servers(domain_id) == self.states[self.oldest].servers(domain_id)
            ]
            self._flush(self._random.choice(unused) if unused else None)
        elif self.log.appender.file_no > self.oldest:
            self._purge(self._random.randint(self.oldest + 1, self.log.appender.file_no))

    def _commit(self, domain_id):
        old = self._seq_no.get(domain_id, 0)
        seq_no = self._seq_no[domain_id] = self._random.choice((old + 1, old + 1, old + 9))
        gtid = Gtid(domain_id=domain_id, server_id=self._random.randint(1, 2), seq_no=seq_no)
        first = self.log.appender.next_record_file_no
        self._begin_files(first)
        self._state.log(gtid)
        self.file_nos.append((first, gtid))
        self.log.commit(str(gtid), self._event(self._random.choice((50, 3000, 17000))))
        self._begin_files(self.log.appender.file_no)

    def _flush(self, dropped):
        self._begin_files(self.log.appender.file_no)
        if dropped is not None:
            self.log.appender.drop_domain(dropped)
            self._state.drop_domain(dropped)
            if self.counts_anew:
                del self._seq_no[dropped]
        self.log.flush()
        self._begin_files(self.log.appender.file_no)

    def _begin_files(self, file_no):
        for begun in range(max(self.states) + 1, file_no + 1):
            self.states[begun] = self._state.copy()

        self._busy = self._random.sample(range(4), self._random.randint(1, 3))

    def _purge(self, oldest):
        for file_no in range(self.oldest, oldest):
            self.log.disk.unlink(f"binlog-{file_no:06d}.ibb")
        self.oldest = oldest

    def positions(self):
        state = GtidState()
        for _, gtid in self.file_nos:
            state.log(gtid)
            gtids = list(state.position().values())
            yield GtidPosition(gtids)
            yield GtidPosition(self._random.sample(gtids, self._random.randint(0, len(gtids))))


def has_group(position, groups, index):
    reached = position.get(groups[index][1].domain_id)
    return reached is not None and any(later == reached for _, later in groups[index:])


@pytest.mark.parametrize("seed", range(40))
def test_deleted_domains_hide_no_file_from_a_replica_without_them(new_log, event, seed):
    """It starts in the newest file that begins after nothing the replica lacks, as the groups have it."""
    random_source = random.Random(seed)
    made = LogOfVanishingDomains(new_log(interval_pages=2), event, random_source, counts_anew=seed % 2 == 0)
    directory = BinlogDirectory(made.log.disk)
    newest = directory.active_file_no()
    log = [(no, gtid) for no, gtid in made.file_nos if no >= made.oldest]
    positions = list(made.positions())
    for position in random_source.sample(positions, min(len(positions), 40)):
        right = [no for no in range(made.oldest, newest + 1) if made.states[no].is_before(position)]
        if not made.counts_anew:  # else a GTID of before the deletion may come again
            lacking = next((no for index, (no, _) in enumerate(log) if not has_group(position, log, index)), newest)
            right = [no for no in right if no <= lacking]
        if not right:
            with pytest.raises(PositionPurgedError):
                directory.seek(position)
            continue
        plan = directory.seek(position)
        explained = f"seed {seed}, {plan}"
        if made.counts_anew:
            assert plan.position.file_no in right, explained
            continue
        assert plan.position.file_no == right[-1], explained
        left_out = len(log) - len(read_from(directory, plan))
        assert all(has_group(position, log, index) for index in range(left_out)), explained


def read_from(directory, plan):
    return [gtid for gtid, _ in groups_of(directory.groups(plan))]


@pytest.mark.parametrize(("gap", "files"), [(1, 300), (7, 500), (200, 1000)])
def test_a_domain_that_came_back_is_found_to_have_been_away_with_few_reads(memory_path, gap, files):
    """Domain 2 ends before the oldest file, is deleted, and logged again `gap` files later; the replica has none."""
    deleted = random.Random(gap).randrange(100, files - gap - 20)

    def state_of(file_no):
        yield Gtid(domain_id=0, server_id=1, seq_no=(file_no + 1) * 100)
        if file_no < deleted:
            yield Gtid(domain_id=2, server_id=1, seq_no=50)
        elif file_no >= deleted + gap:
            yield Gtid(domain_id=2, server_id=1, seq_no=60 + file_no)

    disk = RealDisk(memory_path)
    for file_no in range(files):
        write_bare_file(disk, file_no, size_pages=4, interval_pages=4, states={1: list(state_of(file_no))})
    pages = PageReader(disk, readahead_pages_max=1)
    last_without = deleted + gap - 1
    for seq_no in (files * 100, (last_without + 1) * 100):
        position = GtidPosition.parse(f"0-1-{seq_no}")
        plan = seek(pages, position, oldest_file_no=0, end=LogPosition.on_page(files - 1, 3))
        assert plan.position.file_no == last_without
        assert plan.page_reads <= 24
        assert list(plan.forgotten) == [2]


def write_bare_file(disk, file_no, *, size_pages, interval_pages, states):
    """A file of full size in which only the header and the state records of some pages stand."""
    name = f"binlog-{file_no:06d}.ibb"
    disk.create(name)
    disk.truncate(name, size_pages * PAGE_SIZE)
    disk.write(name, 0, header_of(file_no, size_pages=size_pages, interval_pages=interval_pages))
    for page_no, state in states.items():
        chunk = encode_chunk(RecordType.GTID_STATE, encode_gtid_state(state, None), is_first=True, is_last=True)
        disk.write(name, page_no * PAGE_SIZE, sealed_page(chunk))


def write_sparse_archive(directory, *, file_count, size_pages, interval_pages):
    """Files of full size in which only headers and state records stand; 100 groups an interval, as the states say."""
    disk, groups_per_page = RealDisk(directory), 100
    for file_no in range(file_count):
        first, states = file_no * size_pages * groups_per_page, {}
        for page_no in (1, *range(interval_pages, size_pages - 1, interval_pages)):
            seq_no = first + (page_no - 1) * groups_per_page
            states[page_no] = [Gtid(domain_id=0, server_id=1, seq_no=seq_no)] if seq_no else []
        write_bare_file(disk, file_no, size_pages=size_pages, interval_pages=interval_pages, states=states)
    return disk


def test_a_thousand_files_of_a_gigabyte_cost_no_more_than_24_pages(memory_path):
    files, size_pages, interval_pages = 1000, 65536, 8192  # sparse: only the states take room
    disk = write_sparse_archive(memory_path, file_count=files, size_pages=size_pages, interval_pages=interval_pages)
    random_source, most = random.Random(1), 0
    for _ in range(50):
        seq_no = random_source.randrange(1, files * size_pages * 100)
        plan = BinlogDirectory(disk).seek(GtidPosition.parse(f"0-1-{seq_no}"))
        most = max(most, plan.page_reads)
        behind = plan.state.seq_no(0, 1) or 0
        assert behind <= seq_no < behind + (interval_pages + 1) * 100
    assert most <= 24


def test_the_default_interval_costs_no_more_than_24_pages(memory_path):
    disk = write_sparse_archive(memory_path, file_count=3, size_pages=65536, interval_pages=128)
    pages = PageReader(disk, readahead_pages_max=1)
    end = GtidState([Gtid(domain_id=0, server_id=1, seq_no=3 * 65536 * 100)])
    most = 0
    for seq_no in range(1, 3 * 65536 * 100, 1_000_003):
        position, last = GtidPosition.parse(f"0-1-{seq_no}"), LogPosition.on_page(2, 65535)
        most = max(most, seek(pages, position, oldest_file_no=0, end=last, current_state=end).page_reads)
    assert most + 10 - 2 <= 24  # 1,000 files take up to 10 states to look at, 3 take 2


@pytest.mark.parametrize("interval_pages", [0, 131072])
def test_a_file_without_differential_states_is_read_from_its_first_page(new_log, event, interval_pages):
    log = new_log(size_pages=16, interval_pages=interval_pages)
    log.commit_all(range(1, 30), event(5000))
    assert BinlogDirectory(log.disk).seek(GtidPosition.parse("0-1-20")).position.page_no == 1


@pytest.mark.usefixtures("states_walked")
@pytest.mark.parametrize("restart", [13, 20, 40])
def test_states_that_a_restart_has_made_incomplete_hide_nothing(new_log, event, restart):
    """Domain 1 is in a differential state before a restart, and not logged since: later ones do not name it."""
    log = new_log(size_pages=64, interval_pages=2)
    log.commit("0-1-1", event(50))
    log.commit("1-1-1", event(50))
    log.commit_all(range(2, 5), event(5000))
    log.commit("1-1-2", event(50))
    for seq_no in range(5, 150):
        if seq_no == restart:
            log.appender.differential = GtidState()  # what a restart does
        log.commit(f"0-1-{seq_no}", event(5000))
    directory = BinlogDirectory(log.disk)
    assert directory.state() == GtidState(gtid for gtid, _ in log.groups)
    for seq_no in range(5, 150, 5):
        plan = directory.seek(GtidPosition.parse(f"0-1-{seq_no},1-1-1"))
        assert Gtid.parse("1-1-2") in read_from(directory, plan), seq_no
        assert directory.seek(GtidPosition.parse(f"0-1-{seq_no},1-1-2")).position >= plan.position


@pytest.mark.parametrize("others", ["", ",7-1-1"], ids=["of one domain", "of several"])
def test_a_position_that_was_looked_for_before_costs_nothing_and_follows_the_log(new_log, event, others):
    log = new_log()
    log.commit_all(range(1, 40), event(3000))
    directory = BinlogDirectory(log.disk)
    wanted = GtidPosition.parse(f"0-1-20{others}")
    first, second = directory.seek(wanted), directory.seek(wanted)
    assert (second.position, second.state, second.steps) == (first.position, first.state, first.steps)
    assert first.page_reads > second.page_reads == 0
    found = str(first.state)
    for plan in (first, second):
        plan.state.log(Gtid(domain_id=9, server_id=9, seq_no=9))
        assert str(directory.seek(wanted).state) == found
    newer = GtidPosition.parse(f"0-1-39{others}")
    before = directory.seek(newer)
    log.flush()
    log.commit("0-1-40", event(3000))
    assert directory.seek(newer).position.file_no == before.position.file_no + 1


@pytest.mark.usefixtures("states_walked")
@pytest.mark.parametrize("seed", range(20))
def test_a_plan_of_a_position_near_another_is_what_a_search_finds(new_log, event, seed):
    random_source = random.Random(seed)
    log = new_log(size_pages=random_source.choice((4, 7, 16)), interval_pages=random_source.choice((1, 2, 4)))
    numbers = dict.fromkeys([(0, 1), (0, 2)][: random_source.choice((1, 2))], 0)
    for _ in range(120):
        pair = random_source.choice(list(numbers))
        numbers[pair] += random_source.choice((1, 1, 1, 5))
        log.commit(f"{pair[0]}-{pair[1]}-{numbers[pair]}", event(random_source.choice((50, 3000))))
        if random_source.random() < 0.05:
            log.flush()
    positions = [f"{d}-{s}-{number}" for (d, s), most in numbers.items() for number in range(1, most + 3)]
    random_source.shuffle(positions)
    directory, cost, cost_alone = BinlogDirectory(log.disk), 0, 0
    for position in map(GtidPosition.parse, positions):
        plan, alone = directory.seek(position), BinlogDirectory(log.disk).seek(position)
        assert (plan.position, plan.state, plan.steps) == (alone.position, alone.state, alone.steps)
        assert (plan.wanted, plan.forgotten, plan.is_begun) == (alone.wanted, alone.forgotten, alone.is_begun)
        cost, cost_alone = cost + plan.page_reads, cost_alone + alone.page_reads
    assert cost < cost_alone / 2
    plan.state.log(Gtid(domain_id=9, server_id=9, seq_no=9))
    assert directory.seek(position).state == alone.state


@pytest.mark.usefixtures("states_walked")
@pytest.mark.parametrize("seed", range(20))
def test_what_was_found_before_the_log_grew_is_what_a_search_finds_now_also_where_numbers_step_back(
    new_log, event, seed
):
    rng = random.Random(seed)
    log = new_log(size_pages=rng.choice((7, 16, 40)), interval_pages=rng.choice((1, 2)))
    directory, numbers = BinlogDirectory(log.disk), dict.fromkeys([0, 1][: rng.choice((1, 2))], 0)
    for _ in range(12):
        for _ in range(10):
            domain = rng.choice(list(numbers))
            numbers[domain] += rng.choice((1, 1, 4))
            number = rng.randrange(1, numbers[domain] + 1) if rng.random() < 0.2 else numbers[domain]
            log.commit(f"{domain}-{rng.choice((1, 2))}-{number}", event(rng.choice((50, 3000))))
        for gtids in [*([gtid] for gtid, _ in log.groups[::5]), [gtid for gtid, _ in log.groups[:20]]]:
            position = GtidState(gtids).position()
            plan, alone = directory.seek(position), BinlogDirectory(log.disk).seek(position)
            assert (plan.position, plan.state) == (alone.position, alone.state)


def test_plans_for_others_near_are_bounded(new_log, event, monkeypatch):
    monkeypatch.setattr("ibbmaster.logs.log.seek.FOUND_NEAR_MAX", 3)
    monkeypatch.setattr("ibbmaster.logs.log.seek.FOUND_MAX", 1)
    log = new_log()
    log.commit_all(range(1, 200), event(3000))
    directory = BinlogDirectory(log.disk)
    for seq_no in range(1, 200, 7):
        directory.seek(GtidPosition.parse(f"0-1-{seq_no}"))
        assert all(len(near) <= 3 for near in directory._records.found_near.values())
    assert directory._records.found_near
