"""A replica that announces domains of which it applies nothing: it may begin anywhere there, and never goes back."""

from typing import Any

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.stores import new_store
from tests.primary.streaming.test_steps_back import gtids_in, packets_of

IGNORES_2 = {"ignored_domain_ids": frozenset({2})}


class Pair:
    def __init__(self, store, dump):
        self._store = store
        self._dump = dump
        self.has = GtidState()

    def begin(self, *, logged, has):
        self._store.reset(GtidState.parse(logged))
        self.has = GtidState.parse(has)

    def feed(self, *gtids):
        for gtid in map(Gtid.parse, gtids):
            self._store.write_direct(gtid, make_gtid_event(gtid), [make_event(16, gtid.server_id, bytes(8))])

    def follow(self, *later, **asked):
        left = [later]

        def feed_or_end(session):
            if left:
                self.feed(*left.pop())
            elif session.waits_at_end and not session.is_finished:
                ends.append(None)
                if len(ends) > 3:
                    session.end_of_service()

        ends: list[None] = []
        dump = self._dump(self._store, position=str(self.has.position()), between=feed_or_end, **asked)
        if dump.error is not None:
            raise IbbMasterError(dump.error)
        found = gtids_in(packets_of(bytes(dump.data)))
        for gtid in map(Gtid.parse, found):
            assert gtid.seq_no > (self.has.highest_seq_no(gtid.domain_id) or 0)
            self.has.log(gtid)
        return found

    @property
    def position(self):
        return str(self.has.position())


@pytest.fixture(params=["by kernels", "group by group"])
def pair(request, tmp_path, dump_of):
    is_fast = request.param == "by kernels"
    with new_store(tmp_path) as store:
        yield Pair(store, lambda engine, **asked: dump_of(engine, is_fast=is_fast, **asked))


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test, cases 1 and 2
def test_a_replica_without_a_position_in_a_domain_may_leave_it_out_and_later_take_it(pair):
    pair.begin(logged="1-1-100,2-1-50", has="1-1-100")
    with pytest.raises(IbbMasterError, match="domain 2: the replica has nothing"):
        pair.follow()
    assert pair.follow("1-1-101", "2-1-51", "1-1-102", **IGNORES_2) == ["1-1-101", "2-1-51", "1-1-102"]
    assert pair.follow("2-1-52") == ["2-1-52"]


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test, case 3
def test_a_replica_that_names_the_domains_it_takes_leaves_out_all_others(pair):
    pair.begin(logged="1-1-200,2-1-100", has="1-1-200")
    assert pair.follow("2-1-101", "1-1-201", wanted_domain_ids=frozenset({1})) == ["2-1-101", "1-1-201"]


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test, case 4
def test_a_replica_without_any_position_that_leaves_out_everything_begins_at_the_end(pair):
    pair.begin(logged="1-1-300,2-1-200", has="")
    assert pair.follow("1-1-301", "2-1-201", ignored_domain_ids=frozenset({1, 2})) == ["1-1-301", "2-1-201"]


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test, case 5
@pytest.mark.parametrize("is_strict", [False, True])
def test_a_replica_that_is_ahead_in_a_domain_that_it_leaves_out_gets_nothing_it_has(pair, is_strict):
    asked: dict[str, Any] = {**IGNORES_2, "is_strict": is_strict}
    pair.begin(logged="1-1-400,2-1-300", has="1-1-400,2-1-350")
    assert pair.follow("2-1-301", "2-1-302", "1-1-401", **asked) == ["1-1-401"]
    assert pair.position == "1-1-401,2-1-350"
    assert pair.follow("1-1-402", "2-1-349", "2-1-351", "2-1-352", **asked) == ["1-1-402", "2-1-351", "2-1-352"]
    pair.begin(logged="1-1-400", has="1-1-400,2-1-350")  # it has never heard of that domain
    assert pair.follow("2-1-350", "2-1-351", **asked) == ["2-1-351"]


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test, case 6
def test_such_a_replica_stops_at_its_until_and_goes_on_without_it(pair):
    pair.begin(logged="1-1-500,2-1-400", has="1-1-500")
    pair.feed("1-1-501", "2-1-401", "1-1-502", "1-1-503")
    assert pair.follow(until=GtidPosition.parse("1-1-502"), **IGNORES_2) == ["1-1-501", "1-1-502"]
    assert pair.follow(**IGNORES_2) == ["1-1-503"]
