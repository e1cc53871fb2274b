"""Finds where to read for a GTID position, by binary search over state records: protocol/ibb/gtid-state.md."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.gtid_state import GtidStateRecord
from .interface import ReadPlan
from .pages import PageReader
from .states import FULL_STATE_PAGE, StateRecords, state_at

FOUND_NEAR_MAX = 1024  # kept plans for positions near theirs
NEAR_PAIRS_MAX = 16  # of a log of which such plans are kept
FOUND_MAX = 256  # kept plans: many replicas at one place connect again at once
WALKED_STATES_MAX = 16  # in one file: so few are read one by one


class SeekStep(NamedTuple):
    """One examined state; None after the end of the log."""

    file_no: int
    page_no: int
    state: GtidState | None
    is_before: bool

    def __str__(self) -> str:
        place = f"{format_file_name(self.file_no)} page {self.page_no}"
        if self.state is None:
            return f"{place}: nothing is written there yet"
        verdict = "the replica has all of it" if self.is_before else "has more than the replica"
        return f"{place}: state [{self.state}] {verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekPlan(ReadPlan):
    """Where to begin reading for a replica at `wanted`, on a page, and how that was found. `page_reads` counts pages
    asked of the disk. `forgotten` are deleted domains, with the newest older file that begins with them."""

    wanted: GtidPosition
    steps: tuple[SeekStep, ...]
    page_reads: int
    forgotten: Mapping[int, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        file_name = format_file_name(self.position.file_no)
        return [
            f"position [{self.wanted}]",
            *(f"  {step}" for step in self.steps),
            *(
                f"  domain {domain_id}: deleted between {format_file_name(older_no)} and {file_name}, "
                "which begins without it: a replica needs nothing of it from before"
                for domain_id, older_no in self.forgotten.items()
            ),
            f"start at {file_name} page {self.position.page_no}, state [{self.state}]; {self.page_reads} pages read",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass
class _Search:
    pages: PageReader
    records: StateRecords
    position: GtidPosition
    oldest: int  # file
    steps: list[SeekStep] = field(default_factory=list)
    _full: dict[int, GtidState | None] = field(default_factory=dict)  # what page 1 of a file says
    _judged: dict[int, bool] = field(default_factory=dict)

    def record(self, file_no: int, page_no: int) -> GtidStateRecord | None:
        return self.records.read(self.pages, file_no, page_no)

    def is_behind_the_end(self, file_no: int, page_no: int) -> bool:
        if (file_no, page_no) in self.records:
            return False
        page = self.pages.page(file_no, page_no)
        return page is None or not page[0]

    def full_state(self, file_no: int) -> GtidState | None:
        if file_no not in self._full:
            record = self.record(file_no, FULL_STATE_PAGE)
            self._full[file_no] = None if record is None else GtidState(record.gtids)
        return self._full[file_no]

    def noted(self, file_no: int) -> GtidState:
        state = self.full_state(file_no)
        assert state is not None
        return state

    def judge(self, file_no: int) -> bool:
        if file_no not in self._judged:
            self._judged[file_no] = self.is_before(file_no, FULL_STATE_PAGE, self.full_state(file_no))
        return self._judged[file_no]

    def _was_left_behind(self, state: GtidState) -> bool:
        """Whether a domain was deleted after the position and logged anew, which the replica lacks."""
        first = self.full_state(self.oldest) or GtidState()
        return any(
            state.servers(gtid.domain_id)
            and state.seq_no(gtid.domain_id, gtid.server_id) is None
            and (first.seq_no(gtid.domain_id, gtid.server_id) or 0) >= gtid.seq_no
            for gtid in self.position.values()
        )

    def forgotten(self, file_no: int) -> dict[int, int]:
        self.full_state(self.oldest)
        kept = (self.full_state(file_no) or GtidState()).domain_ids
        return {
            domain_id: older_no
            for older_no, state in sorted(self._full.items())
            if older_no < file_no and state is not None
            for domain_id in state.domain_ids
            if domain_id not in kept
        }

    def is_before(self, file_no: int, page_no: int, state: GtidState | None) -> bool:
        is_before = state is not None and state.is_before(self.position) and not self._was_left_behind(state)
        self.steps.append(SeekStep(file_no=file_no, page_no=page_no, state=state, is_before=is_before))
        return is_before


def seek(
    pages: PageReader,
    position: GtidPosition,
    *,
    oldest_file_no: int,
    end: LogPosition,
    current_state: GtidState | None = None,
    records: StateRecords | None = None,
) -> SeekPlan:
    """Where a replica at `position` begins to read.

    The files from `oldest_file_no` on, up to that of the `end`, all have a header. `current_state` is what is logged up
    to there, if known; `records` are cached. Raises PositionPurgedError: even the oldest file begins after something
    the replica lacks; FormatError: a state is damaged. Source: MariaDB 12.3, innodb_binlog.cc,
    ha_innodb_binlog_reader::init_gtid_pos() and gtid_search."""
    records = StateRecords() if records is None else records
    header = records.header(pages, end.file_no)
    interval = 0 if header is None else header.state_interval_pages
    there = oldest_file_no, end.file_no, interval and end.page_no // interval  # other states, perhaps another plan
    if (near := _found_near(records, position, there)) is not None:
        return near
    key = tuple(position.values()), *there
    known: SeekPlan | None = records.found.get(key)
    if known is not None:
        return replace(known, state=known.state.copy(), page_reads=0)
    reads_before = pages.page_reads
    search = _Search(pages, records, position, oldest_file_no)
    file_no, base = _find_file(search, end.file_no)
    if file_no == end.file_no:
        page_no, state = _find_page(search, file_no, base, end.page_no, current_state)
    else:
        page_no, state = _find_page(search, file_no, base, None, None)
    plan = SeekPlan(
        wanted=position,
        position=LogPosition.on_page(file_no, page_no),
        state=state,
        steps=tuple(search.steps),
        page_reads=pages.page_reads - reads_before,
        forgotten=search.forgotten(file_no),
    )
    if len(records.found) >= FOUND_MAX:
        records.found.clear()
    records.found[key] = kept = replace(plan, state=plan.state.copy())
    if current_state is not None and len(position) == 1 and len(current_state) <= NEAR_PAIRS_MAX:
        _keep_for_near(records, kept, current_state, search.full_state(oldest_file_no), there)
    return plan


class _Near(NamedTuple):
    begin: int
    end: int
    plan: SeekPlan


def _found_near(records: StateRecords, position: GtidPosition, there: tuple[int, ...]) -> SeekPlan | None:
    """The plan of another position of one GTID for which the search judged everything alike."""
    if len(position) != 1:
        return None
    (gtid,) = position.values()
    near: tuple[_Near, ...] = records.found_near.get((gtid.domain_id, gtid.server_id, *there), ())
    index = bisect_right(near, gtid.seq_no, key=lambda one: one.begin)
    if not index or gtid.seq_no >= near[index - 1].end:
        return None
    known = near[index - 1].plan
    return replace(known, wanted=position, state=known.state.copy(), page_reads=0)


def _keep_for_near(
    records: StateRecords, plan: SeekPlan, current: GtidState, first: GtidState | None, there: tuple[int, ...]
) -> None:
    """Keep a plan for positions between those where an examined state is judged differently, up to the log's end."""
    (gtid,) = plan.wanted.values()
    pair = gtid.domain_id, gtid.server_id
    borders = {0, (current.seq_no(*pair) or 0) + 1}
    for state in (first, *(step.state for step in plan.steps)):
        number = None if state is None else state.seq_no(*pair)
        if number is not None:
            borders |= {number, number + 1}
    begin = max(number for number in borders if number <= gtid.seq_no)
    end = min((number for number in borders if number > gtid.seq_no), default=None)
    if end is None:
        return
    if sum(map(len, records.found_near.values())) >= FOUND_NEAR_MAX:
        records.found_near.clear()
    place = *pair, *there
    near: tuple[_Near, ...] = records.found_near.get(place, ())
    index = bisect_right(near, begin, key=lambda one: one.begin)
    before = near[: index - 1] if index and near[index - 1].begin == begin else near[:index]
    records.found_near[place] = (*before, _Near(begin, end, plan), *near[index:])  # at once: other threads look there


def _find_file(search: _Search, active: int) -> tuple[int, GtidState]:
    oldest = search.oldest
    while not search.judge(active) and search.full_state(active) is None and active > oldest:
        active -= 1  # its first state is not there yet
    if search.judge(active):
        return active, search.noted(active)
    if active > oldest:
        search.judge(oldest)
        found = _newest_before(search, oldest, active)
        if found is None:  # before a replica is sent away, look at every file
            found = next((file_no for file_no in range(active - 1, oldest, -1) if search.judge(file_no)), None)
        if found is not None:
            return found, search.noted(found)
    oldest_state = search.full_state(oldest)
    if oldest_state is None and oldest == 0:
        return 0, GtidState()  # nothing is there yet, not even the first state
    raise PositionPurgedError(explain_purged(search.position, format_file_name(oldest), oldest_state or GtidState()))


def _newest_before(search: _Search, low: int, high: int) -> int | None:
    if not search.judge(low) and _stays_so(search, low, high):
        return None
    if high - low <= 1:
        return low if search.judge(low) else None
    middle = (low + high) // 2
    is_before = search.judge(middle)
    newer = _newest_before(search, middle, high)
    return newer if newer is not None or is_before else _newest_before(search, low, middle)


def _stays_so(search: _Search, low: int, high: int) -> bool:
    """Whether only states that have more than the replica follow one that does, up to file `high`: a domain of which it
    has more still exists, without a step back, and cannot have been deleted since it changed."""
    before, after, first = (search.full_state(file_no) or GtidState() for file_no in (low, high, search.oldest))
    return any(
        all((after.seq_no(domain_id, server_id) or 0) >= seq_no for server_id, seq_no in pairs.items())
        and (pairs != first.servers(domain_id) or pairs == after.servers(domain_id))
        for domain_id in before.domains_beyond(search.position)
        if (pairs := before.servers(domain_id))
    )


def _find_page(
    search: _Search, file_no: int, base: GtidState, end_page_no: int | None, current_state: GtidState | None
) -> tuple[int, GtidState]:
    """The last page of the file whose state is before the position: of few states by looking at all, otherwise by
    halving, if that finds all that was logged up to the end of the file."""
    header = search.records.header(search.pages, file_no)
    interval = 0 if header is None else header.state_interval_pages
    if header is None or not 0 < interval < header.size_pages:
        return FULL_STATE_PAGE, base
    count = -(-header.size_pages // interval)
    if end_page_no is not None:
        count = min(count, end_page_no // interval + 1)
    if count <= WALKED_STATES_MAX:
        return _walk_pages(search, file_no, base, (count - 1) * interval, interval)
    page_no, state = _halve_pages(search, file_no, base, count, interval)
    if page_no > FULL_STATE_PAGE:
        end = current_state or search.full_state(file_no + 1)
        if end is None or not _tells_all(search, file_no, page_no, base, end):
            return _walk_pages(search, file_no, base, page_no, interval)
    return page_no, state


def _halve_pages(search: _Search, file_no: int, base: GtidState, count: int, interval: int) -> tuple[int, GtidState]:
    """A page without a due record counts as its former."""
    page_no, state = FULL_STATE_PAGE, base
    low, high = 0, count  # both count intervals
    while high - low > 1:
        middle = probe = (low + high) // 2
        if search.is_behind_the_end(file_no, middle * interval):
            search.is_before(file_no, middle * interval, None)
            high = middle
            continue
        record = None
        while probe > low and record is None:
            record = search.record(file_no, probe * interval) if probe * interval > FULL_STATE_PAGE else None
            probe -= record is None
        if record is None:
            low = middle  # as good as the state we have
            continue
        probed = state_at(state, record)
        if search.is_before(file_no, probe * interval, probed):
            low, page_no, state = middle, probe * interval, probed
        else:
            high = probe
    return page_no, state


def _tells_all(search: _Search, file_no: int, page_no: int, base: GtidState, end: GtidState) -> bool:
    """Whether a differential state names every pair logged in its file: MariaDB's do not after a restart."""
    record = search.record(file_no, page_no)
    told = set() if record is None else {(gtid.domain_id, gtid.server_id) for gtid in record.gtids}
    return all(
        (gtid.domain_id, gtid.server_id) in told or base.seq_no(gtid.domain_id, gtid.server_id) == gtid.seq_no
        for gtid in end
    )


def _walk_pages(
    search: _Search, file_no: int, base: GtidState, last_page_no: int, interval: int
) -> tuple[int, GtidState]:
    """As `_halve_pages` up to a page, with all differential states on top of each other: sure, and slower."""
    page_no, best, state = FULL_STATE_PAGE, base, base
    for probe in range(interval, last_page_no + 1, interval):
        if probe <= FULL_STATE_PAGE:
            continue
        record = search.record(file_no, probe)
        if record is None:
            if search.is_behind_the_end(file_no, probe):
                search.is_before(file_no, probe, None)
                break
            continue
        state = state_at(state, record)
        if not search.is_before(file_no, probe, state):
            break
        page_no, best = probe, state
    return page_no, best


def explain_purged(position: GtidPosition, name: str, oldest_state: GtidState) -> str:
    """Why no file is old enough, domain by domain; `name` is that of the oldest."""
    reasons = []
    for domain_id in sorted(oldest_state.domain_ids):
        latest = oldest_state.latest(domain_id)
        if domain_id not in position:
            reasons.append(f"domain {domain_id}: the replica has nothing, {name} begins after {latest}")
            continue
        wanted = position[domain_id]
        seq_no = oldest_state.seq_no(domain_id, wanted.server_id)
        if seq_no is not None and (seq_no > wanted.seq_no or (seq_no == wanted.seq_no and latest != wanted)):
            reasons.append(f"domain {domain_id}: the replica has {wanted}, {name} begins after {latest}")
    return (
        f"position [{position}] is older than the oldest file, {name}: {'; '.join(reasons) or 'its state is unknown'}. "
        "Add the files before it, or make the replica anew from a newer backup."
    )
