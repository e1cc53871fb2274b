import itertools

import pytest

from ibbmaster.logs.log.interface import LogFile
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.primary.dialogue.log_tables import ServerFacts
from ibbmaster.primary.server.facts import PrimaryFacts
from ibbmaster.primary.server.login_guard import LoginGuard
from ibbmaster.primary.server.options import PrimaryOptions
from ibbmaster.primary.server.registry import Registry
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.wire.auth import make_account
from tests.machinery.events import make_event, new_group
from tests.machinery.simulated_disk import SimulatedDisk


class MemoryBinlog(BinlogStore):
    def __init__(self) -> None:
        super().__init__(SimulatedDisk(), StoreOptions(max_file_bytes=4 << 20))

    def files(self) -> list[LogFile]:
        *files, active = super().files()[: self.end().file_no + 1]
        return [*files, active._replace(size=self.end().offset)]


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def log() -> MemoryBinlog:
    log = MemoryBinlog()
    for number in range(1, 5):
        if number == 3:
            log.flush()
        log.write_direct(*new_group(number, make_event(16, 7, bytes(8)), server_id=7))
    return log


@pytest.fixture
def facts(log, registry) -> ServerFacts:
    return facts_of(log, registry, "classic-11.8")


def facts_of(log, registry, profile_name) -> ServerFacts:
    account = make_account("repl", "x", plugin="native", requires_tls=False)
    profile = PROFILES[profile_name]
    options = PrimaryOptions(host="", port=0, account=account, certificate=None, profile=profile, server_id=7)
    return PrimaryFacts(log, options, registry, LoginGuard(lambda: 0.0))


# As mysql-test/suite/binlog_in_engine/binlog_in_engine.test
def test_the_log_is_told_by_its_files_its_end_and_its_state(facts):
    files = facts.binary_logs()
    assert [name for name, _ in files] == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert facts.binlog_end() == files[-1]
    assert (str(facts.binlog_state()), facts.server_id) == ("0-7-4", 7)


@pytest.mark.parametrize(("profile", "count"), [("engine", 3), ("classic-11.8", 2)])
def test_only_an_engine_lists_the_empty_file_that_is_ready_behind_the_last(log, registry, monkeypatch, profile, count):
    files = [*log.files(), LogFile(file_no=2, name="binlog-000002.ibb", size=1 << 20)]
    monkeypatch.setattr(log, "files", lambda: files)
    found = facts_of(log, registry, profile)
    assert found.binary_logs() == [(file.name, file.size) for file in files[:count]]
    assert found.files() == files[:count]


def test_events_are_those_of_one_file_the_oldest_without_a_name(facts):
    rows = list(facts.binlog_events(None, 0))
    assert [row.event_type for row in rows] == ["Gtid", "Xid"] * 2
    assert [row.info for row in rows[:2]] == ["BEGIN GTID 0-7-1", "COMMIT /* xid=0 */"]
    assert {row.file_name for row in rows} == {"binlog-000000.ibb"}
    assert [row.event_type for row in facts.binlog_events("binlog-000001.ibb", 0)] == ["Gtid", "Xid"] * 2
    with pytest.raises(KeyError):
        facts.binlog_events("other", 0)


# As mysql-test/suite/binlog_in_engine/binlog_legacy_pos.test
def test_events_begin_with_the_first_group_at_an_offset(facts):
    found = [list(facts.binlog_events(None, offset)) for offset in range(facts.binary_logs()[0][1] + 1)]
    first, second = found[0][:2], found[0][2:]  # each a GTID event and what it commits
    assert ["0-7-1" in first[0].info, "0-7-2" in second[0].info] == [True, True]
    assert [rows for rows, _ in itertools.groupby(found)] == [first + second, second, []]


def test_a_position_is_that_of_the_groups_before_an_offset(facts):
    (first, size), (second, _) = facts.binary_logs()
    assert facts.gtid_position_at("", 0) == ""
    assert facts.gtid_position_at(first, size) == "0-7-2"
    assert facts.gtid_position_at(second, 0) == "0-7-2"
    assert facts.gtid_position_at(first, size + 1) is None
    assert facts.gtid_position_at("other", 0) is None


def test_connections_and_replicas_are_those_of_the_registry(facts, registry):
    session = registry.open("::1", 0.0)
    assert facts.replica_hosts() == []
    session.replica_server_id, session.replica_host, session.replica_port = 5, "r", 3306
    (row,) = facts.processes()

    assert facts.replica_hosts() == [(5, "r", 3306)]
    assert (row.connection_id, row.host, row.command) == (1, "::1", "Connect")
    assert "Threads: 1" in facts.statistics()
    assert facts.unix_timestamp() >= facts.started_at
