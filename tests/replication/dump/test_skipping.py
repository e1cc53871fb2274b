"""Skipping and UNTIL against a slow literal model that goes through the log event by event, as the server does."""

import random
from types import SimpleNamespace

import pytest

from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.skipping import SEND, GroupFilter
from ibbmaster.replication.dump.start import StartCheck, check_start
from ibbmaster.replication.event.control import FLAG_UNTIL_REACHED, GtidList, encode_gtid_list
from ibbmaster.replication.event.types import EventFlag, EventType
from tests.replication.dump.conftest import DIVERGED, HOLE, NOT_THERE, make_request

EOF = bytes.fromhex("fe 00 00 02 00")
PART_TYPES = {EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.TABLE_MAP, EventType.ANNOTATE_ROWS}


def skipping(position: str, *, start_state: str = "", until: str | None = None) -> GroupFilter:
    request = make_request(position, until=until)
    check = StartCheck(position=request.position, until=request.until)
    return GroupFilter(request, check, start_state=GtidState.parse(start_state), current_state=GtidState)


def test_nothing_is_decided_once_every_domain_is_at_its_place() -> None:
    judge = skipping("0-1-2")
    assert judge.is_skipping
    assert not judge.judge(Gtid.parse("0-1-1")).is_wanted
    assert judge.judge(Gtid.parse("0-1-2")).ends_skipping
    assert judge.decides_nothing
    assert judge.judge(Gtid.parse("0-1-1")) is SEND


def test_only_the_latest_gtid_of_a_domain_spares_the_skipping() -> None:
    assert skipping("0-1-2", start_state="0-1-2").decides_nothing
    assert skipping("0-1-2", start_state="0-2-9,0-1-2").decides_nothing
    assert not skipping("0-1-2", start_state="0-1-2,0-2-9").decides_nothing


def test_with_an_until_something_is_always_decided() -> None:
    judge = skipping("0-1-2", start_state="0-1-2", until="0-1-9")
    assert not judge.decides_nothing
    assert not judge.is_until_reached
    assert skipping("0-1-2", start_state="0-1-9", until="0-1-9").is_until_reached


def test_the_log_is_asked_once_about_a_domain_that_turns_up() -> None:
    request = make_request("9-1-3")
    check = StartCheck(position=request.position, unknown_domain_ids=frozenset({9}))
    answers = [GtidState.parse("9-1-5")]
    judge = GroupFilter(request, check, start_state=GtidState(), current_state=answers.pop)
    assert [judge.judge(Gtid.parse(f"9-1-{number}")).is_wanted for number in (1, 2, 3, 4)] == [False] * 3 + [True]
    assert not answers


class Model:
    """What a primary does with each event; literal, slow, and knowing nothing of groups."""

    def __init__(self, request: DumpRequest, check: StartCheck, start: GtidState, current: GtidState) -> None:
        self.request = request
        self.current = current
        self.state = start.copy()
        self.to_skip = {
            d: gtid for d, gtid in check.position.items() if not any(gtid == x for x in start.position().values())
        }
        self.empty = set(check.unknown_domain_ids)
        self.until = None
        if check.until is not None:
            self.until = {
                d: g for d, g in check.until.items() if not ((start.seq_no(d, g.server_id) or -1) >= g.seq_no)
            }
        self.skip = self.stop_after = None  # None, "stand-alone" or "transaction"
        self.send_list = self.stopped = False
        self.out: list[bytes] = []
        if self.until == {}:
            self.stop()

    def list_event(self, flags: int = 0) -> bytes:
        return encode_gtid_list(GtidList(gtids=tuple(self.state), flags=flags), server_id=1, flags=EventFlag.ARTIFICIAL)

    def stop(self) -> None:
        self.out += [self.list_event(FLAG_UNTIL_REACHED), EOF]
        self.stopped = True

    def fail(self, text: str) -> None:
        self.out.append(b"\xff" + (1236).to_bytes(2, "little") + b"#HY000" + text.encode())
        self.stopped = True

    def event(self, event: bytes) -> None:
        if self.stopped:
            return
        event_type = event[4]
        if event_type == EventType.GTID:
            self.gtid(event)
            if self.stopped:
                return
        ends = {
            None: False,
            "stand-alone": event_type not in PART_TYPES and event_type != EventType.GTID,
            "transaction": event_type in (EventType.XID, EventType.XA_PREPARE)
            or (event_type == EventType.QUERY and event.endswith((b"\0COMMIT", b"\0ROLLBACK"))),
        }
        if self.skip:
            was_last = ends[self.skip]
            if was_last:
                self.skip = None
        else:
            self.send(event)
            was_last = ends[self.kind]
        if was_last and self.send_list:
            self.out.append(self.list_event())
            self.send_list = False
        if self.stop_after and ends[self.stop_after]:
            self.stop()

    def gtid(self, event: bytes) -> None:
        server = int.from_bytes(event[5:9], "little")
        number, domain = int.from_bytes(event[19:27], "little"), int.from_bytes(event[27:31], "little")
        self.kind = "stand-alone" if event[31] & 1 else "transaction"
        entry = self.to_skip.get(domain)
        if entry is not None:
            if domain in self.empty:
                known = self.current.seq_no(domain, entry.server_id)
                if known is None or known < entry.seq_no:
                    latest = self.current.latest(domain)
                    has_higher = latest is not None and latest.seq_no >= entry.seq_no
                    self.fail((DIVERGED if has_higher else NOT_THERE).format(entry))
                    return
                self.empty.discard(domain)
            if server != entry.server_id or number <= entry.seq_no:
                self.skip = self.kind
            if server == entry.server_id and number >= entry.seq_no:
                if self.request.is_strict and number > entry.seq_no:
                    self.fail(HOLE.format(entry))
                    return
                self.send_list = True
                del self.to_skip[domain]
        if self.until is not None:
            limit = self.until.get(domain)
            if limit is None:
                self.skip = self.kind
            elif server == limit.server_id and number >= limit.seq_no:
                del self.until[domain]
                if not self.until:
                    self.stop_after = self.kind
                if number > limit.seq_no or self.request.until_is_before:
                    self.skip = self.kind
        self.state.log(Gtid(domain_id=domain, server_id=server, seq_no=number))

    def send(self, event: bytes) -> None:
        request, event_type = self.request, event[4]
        if event_type == EventType.ANNOTATE_ROWS and not request.wants_annotate_rows:
            return
        if request.leaves_out_marked and int.from_bytes(event[17:19], "little") & 0x8000:
            return
        self.out.append(event)


def random_log(rng: random.Random, make: SimpleNamespace) -> list[tuple[str, list[bytes], int]]:
    latest: dict[int, int] = {}
    log = []
    for _ in range(rng.randrange(1, 14)):
        domain, server = rng.randrange(3), rng.randrange(1, 3)
        number = latest.get(domain, 0) + rng.choice((1, 1, 1, 2, 3))
        if rng.random() < 0.07:
            number = rng.randrange(1, number + 1)
        latest[domain] = max(number, latest.get(domain, 0))
        flags = rng.choice((0, 0, 0, EventFlag.SKIP_REPLICATION))
        if rng.random() < 0.3:
            events = [make.event(EventType.INTVAR, bytes(9))] * rng.randrange(2)
            events.append(make.event(EventType.QUERY, bytes(13) + b"\0CREATE TABLE t", flags=flags))
            kind = make.STANDALONE
        else:
            body = rng.randbytes(rng.choice((0, 1, 30, 300, 70_000)))
            events = [make.event(EventType.ANNOTATE_ROWS, b"insert"), make.event(EventType.TABLE_MAP, bytes(21))]
            events += [make.event(EventType.WRITE_ROWS_V1, body, flags=flags)] * rng.randrange(3)
            events.append(
                make.event(EventType.XID, bytes(8))
                if rng.random() < 0.7
                else make.event(EventType.QUERY, bytes(13) + rng.choice((b"\0COMMIT", b"\0ROLLBACK")))
            )
            kind = make.TRANSACTIONAL
        log.append((f"{domain}-{server}-{number}", events, kind))
    return log


def random_position(rng: random.Random, log: list[tuple[str, list[bytes], int]]) -> dict[int, Gtid]:
    found = {}
    for gtid, _, _ in rng.sample(log, rng.randrange(len(log) + 1)):
        parsed = Gtid.parse(gtid)
        number = max(0, parsed.seq_no + rng.choice((0, 0, 0, 0, -1, 1, 5)))
        server = parsed.server_id if rng.random() < 0.9 else 7
        found[parsed.domain_id] = Gtid(domain_id=parsed.domain_id, server_id=server, seq_no=number)
    return found


def start_of(log: list[tuple[str, list[bytes], int]], position: GtidPosition) -> tuple[int, GtidState]:
    """The last place in the log where all that was logged before is no later than the position."""
    state, best = GtidState(), (0, GtidState())
    for index, (gtid, _, _) in enumerate(log, 1):
        state.log(Gtid.parse(gtid))
        if state.is_before(position):
            best = index, state.copy()
    return best


@pytest.mark.parametrize("seed", range(400))
def test_the_stream_is_that_of_the_model(seed, make, converse) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        log = random_log(rng, make)
        position = GtidPosition(random_position(rng, log).values())
        until = GtidPosition(random_position(rng, log).values()) if rng.random() < 0.5 else None
        request = make.request(
            str(position),
            until=None if until is None else str(until),
            is_strict=rng.random() < 0.3,
            ignores_duplicates=rng.random() < 0.5,
            until_is_before=rng.random() < 0.3,
            wants_annotate_rows=rng.random() < 0.5,
            leaves_out_marked=rng.random() < 0.3,
        )
        first, start_state = start_of(log, position)
        first, start_state = rng.choice(((first, start_state), (0, GtidState())))
        # the log as it was when the dump began: a domain may turn up later
        known_state = GtidState(Gtid.parse(gtid) for gtid, _, _ in log[: rng.randrange(first, len(log) + 1)])
        try:
            dump = converse(request, start_state=str(start_state), current_state=str(known_state))
        except DumpError:  # refused: see test_start.py
            continue
        model = Model(request, check_start(request, known_state), start_state, dump.current_state)
        for gtid, events, kind in log[first:]:
            dump.current_state.log(Gtid.parse(gtid))
            model.event(make.gtid_event(gtid, group_flags=kind))
            for event in events:
                model.event(event)
            body = b"".join(events)
            pieces = make.cut(body, rng.choice((7, 1000, 16_380, 10**9)) if len(body) < 5000 else 16_380)
            dump.send(make.group(gtid, group_flags=kind, pieces=pieces))
        assert dump.events()[1:] == model.out, f"seed {seed}"
