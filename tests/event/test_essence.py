"""What counts of an event, and that what is ignored is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.event.essence import OF_REPLICA, Essence, Ignored
from ibbmaster.event.header import HEADER, resized
from ibbmaster.event.query import Query, encode_query
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.event.rows.partial import encode_fragments
from ibbmaster.event.types import EventType
from tests.machinery.events import make_event, make_gtid_event
from tests.written_log import inserted

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "11.8"


def kept(events, *ignored):
    return [essence for _, essence in Essence(ignored).of_group(events)]


def table(table_id=1, **given):
    return inserted(written_table("d.t", {"id": "int", "c": "varchar(9)"}, table_id=table_id, **given), [1, "a"])


def without_metadata(event):
    """A TABLE_MAP as under binlog_row_metadata=NO_LOG: after the types the bit of each column that may be NULL."""
    types = b"\x02\x03\x0f\x02$\x00"
    return resized(event[: event.index(types) + len(types) + 1])


def query(**given):
    fields = {"thread_id": 1, "seconds": 2, "error_code": 0, "status": b"", "database": b"d", "text": b"x"} | given
    header = {name: fields.pop(name) for name in ("timestamp", "server_id") if name in fields}
    return [encode_query(Query(**fields), **{"server_id": 1} | header)]


def gtid(**given):
    return [make_gtid_event(ibbmaster.Gtid.parse("0-1-5"), **given)]


DIFFERENT = {
    Ignored.SERVER_ID: (query(), query(server_id=2)),
    Ignored.TIME: (query(), query(seconds=9, timestamp=7, status=b"\x80\1\0\0")),
    Ignored.THREAD_ID: (query(), query(thread_id=3)),
    Ignored.XID: ([make_event(EventType.XID, 1, bytes(8))], [make_event(EventType.XID, 1, b"\1" * 8)]),
    Ignored.TABLE_ID: (table(1), table(2)),
    Ignored.ANNOTATIONS: ([], [make_event(EventType.ANNOTATE_ROWS, 1, b"x")]),
    Ignored.METADATA: (table(1), [without_metadata(table(1)[0]), table(1)[1]]),
    Ignored.PACKING: (table(1), [table(1)[0], *encode_fragments(table(1)[1], 10)]),
}


@pytest.mark.parametrize(("ignored", "pair"), DIFFERENT.items(), ids=DIFFERENT)
def test_what_is_ignored_does_not_count_and_counts_else(ignored, pair):
    first, second = pair
    assert kept(first) != kept(second)
    assert kept(first, ignored) == kept(second, ignored)
    assert kept(first, *(set(Ignored) - {ignored})) != kept(second, *(set(Ignored) - {ignored}))


def test_positions_and_sizes_of_the_header_never_count():
    (event,) = query()
    fields = list(HEADER.unpack_from(event))
    fields[4] = 12345
    assert kept([HEADER.pack(*fields) + event[HEADER.size :]]) == kept([event])


def test_commit_ids_are_ignored_with_what_they_say_about_running_in_parallel():
    with ibbmaster.open(CLASSIC / "group-commit") as log:
        events = [next(group.events()).data for group in log]
    sizes = [len(set(kept([event], *ignored)[0][27:])) for event in events for ignored in ((), OF_REPLICA)]
    assert sizes
    with_ids, without = ({kept([event], *ignored)[0][19 + 13 :] for event in events} for ignored in ((), OF_REPLICA))
    assert len(with_ids) > len(without)


@pytest.mark.parametrize("name", ["ddl-trx-xa", "types-noblob-compressed", "statement", "alter-two-phase"])
def test_damage_is_an_error_of_events_or_counts(name):
    with ibbmaster.open(CLASSIC / name) as log:
        groups = [[event.data for event in group.events()] for group in log]
    for events in groups[::7]:
        for number, event in enumerate(events):
            for size in range(19, len(event), 11):
                hurt = [*events[:number], event[:size], *events[number + 1 :]]
                try:
                    found = kept(hurt, *Ignored)
                except EventError:
                    continue
                assert found != kept(events, *Ignored) or event[4] in (EventType.ANNOTATE_ROWS, EventType.XID)
