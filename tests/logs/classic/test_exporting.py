import json
import shutil
from contextlib import closing
from itertools import pairwise

import pytest

import ibbmaster
from ibbmaster.commands.info import log_info
from ibbmaster.errors import EventError, FormatError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.convert import import_groups
from ibbmaster.logs.classic.exporting import LogRead, export_traditional
from ibbmaster.logs.classic.series import find_series
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.built_logs import CLASSIC, FIXTURES, captures
from tests.damage import flip
from tests.machinery.events import event_offsets
from tests.machinery.importing import import_classic

CAPTURES = captures("big", "big-none", "encrypted")  # the first are 222 MB each
PROFILE = PROFILES["classic-11.8"]


def export(source, target, profile=PROFILE, *, stages=None, **options):
    target.mkdir()
    with closing(RealDisk(target)) as disk, ibbmaster.open(source) as log:
        engine = log.through(**stages).engine if stages else log.engine
        return export_traditional(engine, disk, profile, **options)


def groups_of(path):
    with ibbmaster.open(path) as log:
        return [(str(group.gtid), [event.data for event in group.events()]) for group in log.groups()]


def faults_of(path):
    with ibbmaster.open(path) as log:
        return [str(fault) for fault in log.verify()]


@pytest.mark.parametrize("name", CAPTURES)
def test_each_capture_comes_back_event_by_event(tmp_path, imported, name):
    expected = json.loads((CLASSIC / name / "expected.json").read_text())
    profile, heard = PROFILES[f"classic-{name.partition('/')[0]}"], []
    report = export(
        imported(name), tmp_path / "out", profile, max_file_bytes=20_000, progress=lambda *done: heard.append(done)
    )

    assert groups_of(tmp_path / "out") == groups_of(CLASSIC / name)
    assert report.group_count == expected["event_groups"]
    assert set(map(str, report.gtid_state)) == set(expected["gtid_binlog_state_after"].split(","))
    assert faults_of(tmp_path / "out") == []
    assert heard[-1][0] == heard[-1][1]
    (tmp_path / "again").mkdir()
    import_classic([tmp_path / "out"], RealDisk(tmp_path / "again"), max_file_bytes=64 << 20)
    assert groups_of(tmp_path / "again") == groups_of(tmp_path / "out")


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_max_size.test
def test_a_file_ends_after_the_group_that_fills_it(tmp_path):
    export(FIXTURES / "ibb/large-groups", tmp_path / "out", max_file_bytes=32 << 10)
    paths = sorted((tmp_path / "out").glob("binlog.0*"))
    assert len(paths) == 3
    for path in paths[:-1]:
        size, found = path.stat().st_size, events_in(path)
        assert size - found[-1][1] >= 32 << 10
        last = max(place for place, _, event_type in found if event_type == EventType.GTID)
        assert last < 32 << 10  # the last group began before


def events_in(path):
    data = path.read_bytes()
    offsets = event_offsets(data)
    return [(at, end - at, data[at + 4]) for at, end in pairwise([*offsets, len(data)])]


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_oob_events.test
def test_a_group_that_lies_in_two_files_of_the_log_is_in_one(tmp_path, imported):
    report = export(imported("11.8/large-commit"), tmp_path / "out", max_file_bytes=64 << 10)
    assert sorted(path.stat().st_size for path in (tmp_path / "out").glob("binlog.0*"))[-1] > 12_000_000
    assert report.group_count == len(groups_of(CLASSIC / "11.8/large-commit"))


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_gtid_list_event.test
def test_each_head_has_the_state_and_a_start_of_the_server_begins_a_file(tmp_path, imported):
    with ibbmaster.open(CLASSIC / "10.11/domains") as log:
        starts = sum(file["server_start"] for file in log.stored.facts())
        gtids = [str(group.gtid) for group in log.groups()]
    assert starts == 3  # which .ibb files of an import do not have
    report = export(CLASSIC / "10.11/domains", tmp_path / "out", max_file_bytes=1 << 30)
    assert (len(report.files), report.restart_count) == (3, 2)
    with ibbmaster.open(tmp_path / "out") as log:
        assert [file["server_start"] for file in log.stored.facts()] == [True] * 3
    assert [gtid for gtid, _ in groups_of(tmp_path / "out")] == gtids
    assert faults_of(tmp_path / "out") == []


@pytest.fixture
def restarted(tmp_path):
    """A log in which a server says that it was started: at first, and before its third group."""
    started = encode_format_description(describe_format("12.3.2-MariaDB-log", type_count=172), server_id=1)
    with ibbmaster.create(tmp_path / "log", max_file_bytes="256K", has_background=False) as log:
        log.engine.write_direct(None, started, ())
        log.append("0-1-1", ["CREATE DATABASE d"])
        log.append("0-1-2", ["CREATE DATABASE e"])
        log.engine.write_direct(None, started, ())
        log.append("0-1-3", ["CREATE DATABASE f"])
    return tmp_path / "log"


def test_a_start_that_a_log_of_pages_holds_begins_a_file(tmp_path, restarted):
    report = export(restarted, tmp_path / "out")
    assert (report.files, report.restart_count) == (("binlog.000001", "binlog.000002"), 1)
    with ibbmaster.open(tmp_path / "out") as log:
        assert [file["server_start"] for file in log.stored.facts()] == [True, True]
        assert [file["begins_after"] for file in log.stored.facts()] == ["", "0-1-2"]


@pytest.mark.parametrize("by_kernels", [False, True])
def test_starts_in_a_log_of_pages_are_counted(monkeypatch, restarted, by_kernels):
    monkeypatch.setattr(log_info, "do_pay", lambda size: by_kernels)
    with ibbmaster.open(restarted) as log:
        assert log_info.log_info(log.path, log.engine, log.stored)["servers"] == [
            {"version": "12.3.2-MariaDB-log", "starts": 2}
        ]


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_basic.test
def test_heads_have_time_and_server_of_the_first_group_and_the_last_file_no_rotate(tmp_path):
    export(FIXTURES / "ibb/domains", tmp_path / "out", max_file_bytes=10_000)
    paths = sorted((tmp_path / "out").glob("binlog.0*"))
    for path in paths:
        data, found = path.read_bytes(), events_in(path)
        head, ending = found[:3], found[-1]
        kinds = [EventType.FORMAT_DESCRIPTION, EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT]
        assert [event_type for _, _, event_type in head] == kinds
        first = data[found[3][0] :][:9]
        assert found[3][2] == EventType.GTID
        for place, _, _ in head:
            assert data[place : place + 4] + data[place + 5 : place + 9] == first[:4] + first[5:]  # time, server
        assert ending[2] == (EventType.STOP if path == paths[-1] else EventType.ROTATE)


def test_a_part_of_a_log_begins_with_the_state_before_it(tmp_path):
    report = export(CLASSIC / "11.8/checksum-switch", tmp_path / "out", stages={"after": "0-1-14", "until": "0-1-18"})
    assert (tmp_path / "out/binlog.state").read_text() == f"{report.gtid_state}\n"
    with ibbmaster.open(tmp_path / "out") as log:
        assert log.stored.facts()[0]["begins_after"] == "0-1-14"
        assert [str(group.gtid) for group in log.groups()][:1] == ["0-1-15"]


def test_a_domain_that_was_forgotten_is_in_no_later_head(tmp_path):
    with ibbmaster.create(tmp_path / "log", state="5-1-7", max_file_bytes="256K", has_background=False) as log:
        log.append("0-1-1", ["INSERT INTO d.t VALUES (1)"])
        log.engine.flush(delete_domain_ids=[5])
        log.append("0-1-2", ["INSERT INTO d.t VALUES (2)"])
        expected = log.state
    report = export(tmp_path / "log", tmp_path / "out")

    assert report.gtid_state == expected == GtidState.parse("0-1-2")
    assert len(report.files) == 2
    forgot = "binlog.000002: the server forgot domain 5 here (DELETE_DOMAIN_ID)"
    assert faults_of(tmp_path / "out") == [f"note: {forgot}"]
    reader = ClassicReader(find_series([tmp_path / "out"]))
    assert ([str(group.gtid) for group in reader.groups()], reader.notices) == (["0-1-1", "0-1-2"], [forgot])


def test_groups_without_an_end_are_refused_by_name(tmp_path):
    with pytest.raises(EventError, match=r"^group 0-1-1 at binlog-000000\.ibb offset 16389: it has no event that ends"):
        export(FIXTURES / "ibb-mariadb/two-restarts", tmp_path / "out")


def test_a_damaged_log_is_an_error(tmp_path):
    source = shutil.copytree(FIXTURES / "ibb/domains", tmp_path / "log")
    flip(source / "binlog-000000.ibb", 20_000)
    with pytest.raises(FormatError, match=r"^binlog-000000\.ibb page 1"):
        export(source, tmp_path / "out")


def test_groups_of_a_part_become_pages_again(tmp_path):
    (tmp_path / "out").mkdir()
    with ibbmaster.open(CLASSIC / "10.11/domains") as log:
        report = import_groups(
            LogRead(log.through(domain=[1, 2], drop_empty=True).engine),
            RealDisk(tmp_path / "out"),
            max_file_bytes=64 << 10,
            state_interval_bytes=16 << 10,
        )
        expected = [str(group.gtid) for group in log.groups() if group.gtid.domain_id in (1, 2)]
    assert [gtid for gtid, _ in groups_of(tmp_path / "out")] == expected
    assert report.group_count == len(expected)
    assert faults_of(tmp_path / "out") == []
