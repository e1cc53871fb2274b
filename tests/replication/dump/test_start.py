import pytest

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.start import StartCheck, check_start, choose_file, opening_file_name
from tests.replication.dump.conftest import DIVERGED, NOT_THERE, make_request

STATE = GtidState.parse("0-2-3,0-1-8,3-1-2")


def check(position: str, *, until: str | None = None, **changes: bool) -> StartCheck:
    return check_start(make_request(position, until=until, **changes), STATE)


def refused(call, *args, **changes) -> DumpError:
    with pytest.raises(DumpError) as caught:
        call(*args, **changes)
    assert (caught.value.code, caught.value.sqlstate) == (1236, "HY000")
    return caught.value


def refusal(position: str, **changes) -> DumpError:
    return refused(check, position, **changes)


@pytest.mark.parametrize("position", [None, "", "0-1-8,3-1-2", "0-1-1", "0-2-2", "0-2-3", "0-1-0"])
def test_what_the_log_has_is_a_start(position: str) -> None:
    assert check(position) == StartCheck(position=GtidPosition.parse(position or ""))


def test_a_gtid_ahead_of_its_domain_is_not_in_the_binlog_whatever_the_until() -> None:
    for until in (None, "0-1-100"):
        assert refusal("0-1-99", until=until).text == NOT_THERE.format("0-1-99")
    assert refusal("3-1-18446744073709551615").text == NOT_THERE.format("3-1-18446744073709551615")


@pytest.mark.parametrize("gtid", ["0-7-2", "0-2-4", "0-7-8"])  # below, and beside what was logged last
def test_an_unknown_gtid_in_a_domain_that_is_further_says_diverged(gtid: str) -> None:
    assert refusal(gtid).text == DIVERGED.format(gtid)
    for changes in ({"is_strict": True}, {"ignores_duplicates": True}):
        assert refusal(gtid, **changes).text == DIVERGED.format(gtid)


def test_an_unknown_domain_is_accepted_and_remembered() -> None:
    found = check("0-1-8,9-9-9")
    assert found.unknown_domain_ids == {9}
    assert found.position == GtidPosition.parse("0-1-8,9-9-9")


def test_ignore_duplicates_lets_a_gtid_ahead_pass() -> None:
    assert check("0-1-99", ignores_duplicates=True).position == GtidPosition.parse("0-1-99")


@pytest.mark.parametrize(
    ("position", "until", "left"),
    [
        ("0-1-99,3-1-1", "0-1-8,3-1-2", "3-1-2"),
        ("0-1-99", "3-1-2", "3-1-2"),
        ("0-1-1", "0-1-4", "0-1-4"),
        ("0-1-1", "", ""),
    ],
    ids=["a start behind it: its domain is done", "a start in another domain", "kept", "empty"],
)
def test_what_is_left_of_an_until(position: str, until: str, left: str) -> None:
    assert check(position, until=until).until == GtidPosition.parse(left)
    assert check("0-1-1").until is None


def test_our_log_learns_domain_what_the_log_has_and_what_to_do() -> None:
    ahead = refusal("0-1-99").explanation
    assert "domain 0: the log ends at 0-1-8 and has server 1 up to 8, the replica is at 0-1-99" in ahead
    assert "set the replica's gtid_slave_pos back for domain 0, or serve the log that has 0-1-99" in ahead
    diverged = refusal("0-7-2").explanation
    assert "nothing of server 7" in diverged
    assert "the replica executed 0-7-2 by itself, or follows another primary's log" in diverged


FILES = ["binlog.000001", "binlog.000002"]


def file_request(name: str, position: int) -> DumpRequest:
    return make_request(None, file_name=name, file_position=position)


def test_an_empty_name_is_the_oldest_file() -> None:
    assert choose_file(file_request("", 4), FILES) == 0
    assert choose_file(file_request("binlog.000002", 777), FILES) == 1


@pytest.mark.parametrize("name", ["binlog.000009", "./binlog.000001", "../x", ""])
def test_an_unknown_file_is_refused_and_any_where_none_is(name: str) -> None:
    error = refused(choose_file, file_request(name, 4), FILES if name else [])
    assert error.text == "Could not find first log file name in binary log index file"
    assert ("there are binlog.000001 to binlog.000002" if name else "there are no files") in error.explanation


@pytest.mark.parametrize(("name", "shown"), [("", "."), ("binlog.000001", "binlog.000001")])
def test_an_offset_before_the_first_event_is_refused(name: str, shown: str) -> None:
    assert refused(choose_file, file_request(name, 0), FILES).text == (
        "Client requested master to start replication from impossible position; the first event "
        f"'{shown}' at 0, the last event read from '{shown}' at 4, the last byte read from '{shown}' at 4."
    )


def opening_name(
    held: str, *, profile: str = "engine", newest: str = "binlog-000009.ibb", is_registered: bool = True
) -> str:
    """What a replica hears that knows the name `held`, and of which the next group is in file 5."""
    replica = make_request(file_name=held, is_registered=is_registered)
    return opening_file_name(
        replica, PROFILES[profile], start_file_name="binlog-000005.ibb", newest_file_name=lambda: newest
    )


@pytest.mark.parametrize("profile", ["engine", "compat"])
@pytest.mark.parametrize("held", ["binlog-000000.ibb", "binlog-000005.ibb", "binlog-000009.ibb"])
def test_a_replica_that_connects_again_hears_the_name_it_knows(held: str, profile: str) -> None:
    assert opening_name(held, profile=profile) == held


@pytest.mark.parametrize(
    "held", ["", "binlog-000010.ibb", "binlog.000001", "binlog-000001.ibb.1", "../binlog-000001.ibb", "x" * 200]
)
def test_a_name_that_this_log_never_had_is_not_repeated(held: str) -> None:
    assert opening_name(held) == "binlog-000005.ibb"


def test_tools_and_replicas_of_a_primary_that_begins_each_file_with_a_rotate_hear_the_file_of_the_group() -> None:
    for profile in ("classic-10.11", "classic-11.8"):
        assert opening_name("binlog-000001.ibb", profile=profile) == "binlog-000005.ibb"
    assert opening_name("binlog-000001.ibb", is_registered=False) == "binlog-000005.ibb"


@pytest.mark.parametrize(
    ("position", "changes", "start"),
    [
        ("0-1-99,1-1-5", {"ignored_domain_ids": frozenset({0})}, "0-1-99,1-1-5"),
        ("0-1-99,1-1-5", {"wanted_domain_ids": frozenset({1})}, "0-1-99,1-1-5"),
        ("0-1-3,1-1-5", {"wanted_domain_ids": frozenset({1})}, "0-1-7,1-1-5"),
        ("0-1-3,9-1-1", {"ignored_domain_ids": frozenset({9})}, "0-1-3,9-1-1"),
        ("0-1-3", {"wanted_domain_ids": frozenset({0, 1})}, "0-1-3"),
        ("0-1-3", {"wanted_domain_ids": frozenset({5})}, "0-1-7,1-1-5"),
    ],
)
def test_where_a_replica_is_in_domains_that_it_leaves_out_does_not_matter(position, changes, start):
    found = check_start(make_request(position, **changes), GtidState.parse("0-1-7,1-1-5"))
    assert (found.position, found.unknown_domain_ids) == (GtidPosition.parse(start), frozenset())


def test_other_domains_of_such_a_replica_are_checked() -> None:
    with pytest.raises(DumpError, match="GTID 0-1-99, which is not"):
        check_start(make_request("0-1-99,1-1-9", ignored_domain_ids=frozenset({1})), GtidState.parse("0-1-7,1-1-5"))
