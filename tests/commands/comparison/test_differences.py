"""Two streams of transactions beside each other: what is found, in which order, and what is counted."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

import ibbmaster
from ibbmaster.api import group as group_module
from ibbmaster.commands.comparison.differences import Comparison, lines_of, logged_groups, sent_groups
from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.capture.client import PrimaryAddress
from ibbmaster.replication.event.essence import EVENTS_MAX, Essence, Ignored
from ibbmaster.replication.event.types import EventType
from tests.machinery.events import make_event


class One(NamedTuple):
    gtid: Gtid
    events: tuple[bytes, ...]

    def data(self):
        return iter(self.events)

    def place(self):
        return f"place of {self.gtid.seq_no}"


def one(gtid, *texts):
    return One(Gtid.parse(gtid), tuple(make_event(EventType.ANNOTATE_ROWS, 1, text.encode()) for text in texts))


def compared(first, second, **given):
    found = Comparison(iter(first), iter(second), **given)
    return found, [(str(difference.gtid), difference.kind, difference.event_no) for difference in found]


def test_equal_streams_have_no_difference():
    groups = [one("0-1-1", "a"), one("1-1-1", "b"), one("0-1-2")]
    found, differences = compared(groups, groups)
    assert (found.equal, differences, found.kinds) == (3, [], {})


def test_the_order_of_domains_does_not_count():
    groups = [one(f"{domain}-1-{number}", "x") for domain in range(3) for number in range(1, 6)]
    for seed in range(20):
        mixed = sorted(groups, key=lambda group: (group.gtid.seq_no, group.gtid.domain_id))
        random.Random(seed).shuffle(mixed)
        mixed.sort(key=lambda group: group.gtid.seq_no)
        assert compared(groups, mixed)[1] == [], seed


def test_what_one_has_alone_is_named_where_it_lies():
    first = [one("0-1-1"), one("0-1-2"), one("0-1-4"), one("7-1-1")]
    found, differences = compared(first, [one("0-1-1"), one("0-1-3"), one("0-1-4"), one("0-1-5")])
    assert sorted(differences) == [
        ("0-1-2", "only in first", None),
        ("0-1-3", "only in second", None),
        ("0-1-5", "only in second", None),
        ("7-1-1", "only in first", None),
    ]
    assert (found.equal, found.kinds) == (2, {"only in first": 2, "only in second": 2})


def test_the_first_event_that_differs_is_named():
    found = Comparison(iter([one("0-1-1", "same", "this", "more")]), iter([one("0-1-1", "same", "that", "more")]))
    (difference,) = found
    assert (difference.kind, difference.event_no, difference.part) == ("ANNOTATE_ROWS", 1, "body from byte 2")
    assert difference.first == "ANNOTATE_ROWS, 23 bytes: this"
    assert list(lines_of([difference], ("A", "B"), str)) == [
        "0-1-1 event 1 differs in its body from byte 2",
        "  A place of 1: ANNOTATE_ROWS, 23 bytes: this",
        "  B place of 1: ANNOTATE_ROWS, 23 bytes: that",
    ]


def test_events_that_one_has_more_are_a_difference():
    (difference,) = Comparison(iter([one("0-1-1", "a", "b")]), iter([one("0-1-1", "a")]))
    assert (difference.kind, difference.event_no, difference.second) == ("events", 1, "")
    assert list(lines_of([difference], ("A", "B"), str))[-1] == "  B place of 1: no more events"


def test_another_server_of_one_number_is_another_transaction_unless_that_is_ignored():
    first, second = [one("0-1-1", "a")], [one("0-2-1", "a")]
    assert compared(first, second)[1] == [("0-1-1", "only in first", None), ("0-2-1", "only in second", None)]
    assert compared(first, second, essence=Essence([Ignored.SERVER_ID]), ignores_server_id=True)[1] == []


def test_events_of_a_long_transaction_count_beyond_those_that_have_a_digest_of_their_own():
    texts = [str(number) for number in range(EVENTS_MAX + 5)]
    other = [*texts[:-1], "x"]
    assert compared([one("0-1-1", *texts)], [one("0-1-1", *texts)])[1] == []
    assert compared([one("0-1-1", *texts)], [one("0-1-1", *other)])[1] == [("0-1-1", "type 0", EVENTS_MAX)]


def test_a_damaged_event_names_its_transaction_and_place():
    broken = One(Gtid.parse("0-1-9"), (make_event(EventType.QUERY, 1, b""),))
    with pytest.raises(EventError, match=r"^group 0-1-9 at place of 9: QUERY of 19 bytes"):
        compared([broken], [])


IBB = Path(__file__).parents[3] / "fixtures" / "ibb"


def test_a_log_equals_itself_as_a_primary_sends_it():
    with (
        ibbmaster.serve(IBB / "domains", password="secret", tls="off") as primary,
        ibbmaster.open(IBB / "domains") as log,
    ):
        address = PrimaryAddress(
            host=primary.host, port=primary.port, user="repl", password="secret", uses_tls=False, server_id=77
        )
        found = Comparison(logged_groups(log), sent_groups(address, GtidPosition()))
        assert (list(found), found.equal) == ([], sum(1 for _ in log))
        later = Comparison(logged_groups(log), sent_groups(address, GtidPosition.parse("2-2-4")))
        assert {difference.kind for difference in later} == {"only in first"}
        assert {difference.gtid.domain_id for difference in later} <= {2}


@pytest.mark.parametrize("kept_max", [1 << 20, 0], ids=["kept", "read again"])
def test_a_transaction_of_a_log_is_read_again_and_not_kept(kept_max, monkeypatch):
    monkeypatch.setattr(group_module, "KEPT_BYTES_MAX", kept_max)
    with ibbmaster.open(IBB / "domains") as log:
        groups = list(logged_groups(log))
        assert all(group._group._kept is None for group in groups)
        assert list(groups[3].data()) == list(groups[3].data()) != []
        assert groups[3].place().startswith("binlog-000000.ibb page 1")
