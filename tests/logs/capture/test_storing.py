"""A dump is stored by kernels and without them alike, however its bytes come, wherever they end, if any bit flips."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel import loading
from ibbmaster.logs.capture import storing
from ibbmaster.logs.capture.storing import StoredDump
from ibbmaster.logs.classic.convert import GroupConverter
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.replication.event.header import without_checksum
from ibbmaster.replication.wire.packet import frame_packets, frame_payloads
from tests.machinery.events import groups_of, split_events
from tests.machinery.simulated_disk import SimulatedDisk

CAPTURE = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8" / "domains" / "binlog.000001"
EOF = b"\xfe\0\0\0\0"
SMALL = StoreOptions(max_file_bytes=1 << 18, redo_bytes=1 << 18, state_interval_bytes=1 << 16)
GTID = 162


class Pieces:
    """Bytes that come in these pieces, each after the one before was taken; then no more."""

    is_empty = True

    def __init__(self, *pieces):
        self._pieces = [piece for piece in pieces if piece]

    def next(self):
        return self._pieces.pop(0) if self._pieces else b""


class Outcome(NamedTuple):
    groups: list
    problem: str | None
    told: int
    last: tuple
    answer: tuple  # the last place that is acknowledged


def dump_of(events, end=EOF):
    """What a primary sends."""
    return frame_payloads([*(b"\0" + event for event in events), end], 1)[0]


def semi_sync_dump_of(events, wanted):
    """As a primary with semi-synchronous replication sends it, whose packets have other numbers after each answer;
    `wanted` are the numbers of groups that it wants to hear of."""
    stream, number = b"", -1
    for at, event in enumerate(events):
        number += event[4] == GTID
        ends = at + 1 == len(events) or events[at + 1][4] == GTID
        payload = b"\0\xef" + bytes((ends and number in wanted,)) + event
        stream += frame_packets(payload, 3 * at % 7)[0]
    return stream + frame_packets(EOF, 0)[0]


def events_of_capture():
    """The head of a file, and some of its groups, a DDL first, checksums and all."""
    head, groups = [], []
    for event in split_events(CAPTURE.read_bytes()[4:]):
        if event[4] == GTID:
            groups.append([])
        (groups[-1] if groups else head).append(event)
    return head, [event for number in CHOSEN for event in groups[number]]


CHOSEN = (1, 12, 17)  # 0-1-2, 2-1-3, 0-77-4
HEAD, EVENTS = events_of_capture()
STREAM = dump_of(EVENTS)
PAIRS = GtidState.parse("0-77-1,0-1-1,2-1-1")  # so that all groups are for a kernel


def stored(*pieces, path, state=PAIRS, is_over=None, has_checksums=True, has_heads=False):
    """What a log has after these bytes, and what is said of them."""
    with BinlogStore(SimulatedDisk(), SMALL, initial_state=state) as store:
        bulk = GroupConverter(store, loading.load()) if path == "kernels" else None
        told, problem, has_ended = [], None, None
        try:
            storer = StoredDump(store, bulk, Pieces(*pieces), told.append)
            has_ended = storer.run(has_checksums=has_checksums, has_heads=has_heads)
        except (IbbMasterError, RuntimeError) as error:
            problem = f"{type(error).__name__}: {error}"
        except Exception as error:  # that of a driver, for the error of a primary
            problem = repr(error)
        if is_over is not None:
            assert has_ended is is_over
        last = (told[-1].last_gtid, told[-1].last_timestamp) if told else ()
        groups, answers = groups_of(store.groups(store.start_of_file())), [one.acknowledgements[-1:] for one in told]
        answer = next(filter(None, reversed(answers)), ())
        return Outcome(groups, problem, sum(one.groups for one in told), last, answer), bulk


def outcome(*pieces, **options):
    return stored(*pieces, **options)[0]


def test_the_kernel_stores_all_groups_that_are_plain():
    for stream in (STREAM, dump_of([*HEAD, *EVENTS])):
        found, bulk = stored(stream, path="kernels")
        assert (len(found.groups), found.problem, found.told) == (3, None, 3)
        assert bulk.group_count == 3
        assert found == outcome(stream, path="reference")


@pytest.mark.parametrize("path", ["kernels", "reference"])
def test_wherever_the_bytes_are_cut_the_same_is_stored(path, request):
    wanted = outcome(STREAM, path="reference", is_over=True)
    takes_all = path == "kernels" or request.config.getoption("--interop-all")
    for cut in range(0, len(STREAM), 1 if takes_all else 10):
        assert outcome(STREAM[:cut], STREAM[cut:], path=path, is_over=True) == wanted, cut
    for size in (1, 3, 100):
        pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
        assert outcome(*pieces, path=path, is_over=True) == wanted, size


def test_wherever_the_bytes_end_whole_groups_are_stored_and_nothing_else():
    whole = outcome(STREAM, path="reference").groups
    for end in range(len(STREAM)):
        found = outcome(STREAM[:end], path="kernels", is_over=False)
        assert found == outcome(STREAM[:end], path="reference", is_over=False), end
        assert found.groups == whole[: found.told], end


def test_a_dump_that_is_over_inside_a_group_is_an_error_and_no_part_of_it():
    for count in range(len(EVENTS)):
        found = outcome(dump_of(EVENTS[:count]), path="kernels")
        assert found == outcome(dump_of(EVENTS[:count]), path="reference"), count
        begun = sum(event[4] == GTID for event in EVENTS[:count])
        assert len(found.groups) == begun - (found.problem is not None), count


@pytest.mark.parametrize("has_checksums", [True, False])
def test_whichever_bit_flips_both_ways_store_and_say_the_same(request, has_checksums):
    stream = STREAM if has_checksums else dump_of(map(without_checksum, EVENTS))
    whole = outcome(stream, path="reference", has_checksums=has_checksums).groups
    assert whole == outcome(STREAM, path="reference").groups
    rng = random.Random(request.config.getoption("--stream-seed") or 1)
    tried = 0
    takes_all = request.config.getoption("--interop-all")
    for at in range(0, len(stream), 1 if takes_all else 3):
        for bit in range(8) if takes_all else [rng.randrange(8)]:
            changed = bytearray(stream)
            changed[at] ^= 1 << bit
            found = outcome(bytes(changed), path="kernels", has_checksums=has_checksums)
            assert found == outcome(bytes(changed), path="reference", has_checksums=has_checksums), (at, bit)
            assert not has_checksums or found.groups == whole[: len(found.groups)], (at, bit)
            tried += 1
    print(f"{tried} flipped bits")


@pytest.mark.parametrize("wanted", [{0, 1, 2}, {1}, set()], ids=["each", "one", "none"])
def test_a_semi_synchronous_dump_is_stored_alike_and_the_last_wanted_group_is_acknowledged(wanted, request):
    stream = semi_sync_dump_of(EVENTS, wanted)
    whole, bulk = stored(stream, path="kernels", has_heads=True)
    assert bulk.group_count == len(whole.groups) == 3
    assert whole.groups == outcome(STREAM, path="reference").groups
    assert bool(whole.answer) == bool(wanted)
    assert whole == outcome(stream, path="reference", has_heads=True)
    for end in range(0, len(stream), 1 if request.config.getoption("--interop-all") else 29):
        found = outcome(stream[:end], path="kernels", has_heads=True)
        assert found == outcome(stream[:end], path="reference", has_heads=True), end


def test_whichever_bit_of_the_heads_of_semi_synchronous_packets_flips_both_ways_do_the_same(request):
    takes_all = request.config.getoption("--interop-all")
    stream, at = semi_sync_dump_of(EVENTS, {0, 2}), 0
    while at < len(stream):
        for byte in range(at, at + 7):
            for bit in range(8) if takes_all else [random.randrange(8)]:
                changed = bytearray(stream)
                changed[byte] ^= 1 << bit
                found = outcome(bytes(changed), path="kernels", has_heads=True)
                assert found == outcome(bytes(changed), path="reference", has_heads=True), (byte, bit)
        at += 4 + int.from_bytes(stream[at : at + 3], "little")


def test_the_error_of_a_primary_comes_after_the_groups_before_it():
    refusal = b"\xff\xd4\x04#HY000purged"
    found = outcome(dump_of(EVENTS, refusal), path="kernels")
    assert found == outcome(dump_of(EVENTS, refusal), path="reference")
    assert (len(found.groups), found.problem) == (3, "OperationalError(1236, 'purged')")


def test_a_pair_that_is_new_and_a_number_that_goes_back_are_as_without_kernels():
    for state in (GtidState(), GtidState.parse("0-77-1,0-1-1,2-1-900")):
        found = outcome(STREAM, path="kernels", state=state)
        assert found == outcome(STREAM, path="reference", state=state), state


def test_many_groups_are_durable_at_once_and_told_with_the_last_of_them(monkeypatch):
    monkeypatch.setattr(storing, "GROUPS_PER_SYNC", 2)
    gtid = Gtid.parse(str(outcome(STREAM, path="reference").groups[-1][0]))
    for path in ("kernels", "reference"):
        found = outcome(STREAM, path=path)
        assert (found.told, found.last[0]) == (3, gtid)
