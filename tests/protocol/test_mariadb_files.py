"""Directories that MariaDB's own engine code wrote, read in every way; expected.json says what is in them."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from ibbmaster.commands.cli.main import main
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.log import verify as verifying
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LogPosition
from ibbmaster.primary.streaming import shared
from ibbmaster.replication.event.split import EventSplitter
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk

FILES = Path(__file__).parents[2] / "fixtures" / "ibb-mariadb"
NAMES = sorted(path.name for path in FILES.iterdir())


@pytest.fixture(params=NAMES)
def written(request):
    return FILES / request.param, json.loads((FILES / request.param / "expected.json").read_text())


@pytest.fixture(params=["with kernels", "without"])
def kernels_or_not(request, monkeypatch):
    ready = loading.load if request.param == "with kernels" else lambda: None
    for module in (verifying, shared):
        monkeypatch.setattr(module, "kernels", ready)


def events_of(pieces):
    splitter = EventSplitter()
    events, data, kind = [], b"", 0
    for piece in pieces:
        for part in splitter.feed(piece):
            if part.header is not None:
                data, kind = b"", int(part.header.event_type)
            data += part.data
            if part.is_last:
                events.append([kind, len(data), hashlib.sha1(data).hexdigest()])
    splitter.finish()
    return events


def groups_behind(directory, position):
    """As expected.json has them."""
    groups = iter(directory.groups(directory.seek(position)).next_group, None)
    return [
        {"gtid": group.gtid and str(group.gtid), "events": events_of([group.gtid_event, *group.body])}
        for group in groups
    ]


def test_there_are_four():
    assert NAMES == ["delete-domain", "large-pieces", "mixed", "two-restarts"]


def test_the_files_are_those_that_were_written_and_every_event_is_read_in_order(written):
    path, expected = written
    for file in expected["files"]:
        assert hashlib.sha256((path / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    directory = BinlogDirectory(RealDisk(path))
    assert groups_behind(directory, directory.start_of_file().state.position()) == expected["groups"]


@pytest.mark.usefixtures("kernels_or_not")
def test_verify_finds_no_damage_and_notes_what_mariadb_forgets_at_a_restart(written):
    path, expected = written
    totals = Totals()
    found = list(verify(RealDisk(path), totals))
    assert [str(fault) for fault in found if fault.is_damage] == []
    assert totals.groups == len(expected["groups"])
    places = [(fault.location.file_no, fault.location.page_no) for fault in found]
    assert places == ([(0, 8), (0, 10), (0, 12), (0, 14), (0, 16), (1, 1)] if path.name == "two-restarts" else [])
    assert all("MariaDB forgets pairs that it logged before a restart" in str(fault) for fault in found)


def test_the_command_ends_well_over_notes_and_takes_them_for_faults_if_told_to(capsys):
    path = str(FILES / "two-restarts")
    assert main(["verify", path]) == 0
    assert capsys.readouterr().out.endswith("no faults, 6 notes\n")
    assert main(["verify", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["faults"], len(answer["notes"])) == ([], 6)
    assert main(["verify", path, "--strict"]) == 1
    assert capsys.readouterr().out.endswith(": 6 faults\n")


def test_from_every_position_of_the_log_what_follows_it_is_found(written):
    path, expected = written
    directory = BinlogDirectory(RealDisk(path))
    state = directory.start_of_file().state
    for index, group in enumerate(expected["groups"]):
        if group["gtid"] is not None:
            state.log(Gtid.parse(group["gtid"]))
            rest = expected["groups"][index + 1 :]
            found = groups_behind(directory, state.position())
            assert found[len(found) - len(rest) :] == rest


def test_a_replica_without_a_deleted_domain_starts_where_mariadb_starts_it(capsys):
    plan = BinlogDirectory(RealDisk(FILES / "delete-domain")).seek(GtidPosition.parse("0-1-25"))
    assert plan.position == LogPosition.on_page(5, 1)
    assert main(["seek", str(FILES / "delete-domain"), "0-1-25"]) == 0
    assert "domain 2: deleted between binlog-000001.ibb and binlog-000005.ibb" in capsys.readouterr().out


def test_what_a_restart_made_the_states_forget_is_not_passed_over_where_the_states_before_tell_of_it():
    """Domain 1 is named by the first differential states only; MariaDB itself starts at page 14, behind it."""
    found = groups_behind(BinlogDirectory(RealDisk(FILES / "two-restarts")), GtidPosition.parse("0-1-25"))
    assert "1-1-1" in [group["gtid"] for group in found]


@pytest.mark.usefixtures("kernels_or_not")
def test_a_replica_is_served_every_event(dumped, written):
    path, expected = written
    events = [event for group in expected["groups"] if group["gtid"] for event in group["events"]]
    directory = BinlogDirectory(RealDisk(path))
    found, error = dumped(directory, directory.start_of_file().state.position(), wants_annotate_rows=True)
    assert error is None
    made = int(EventType.FORMAT_DESCRIPTION)
    assert [event for event in events_of(found) if event[0] != made] == events


def test_a_log_that_mariadb_wrote_can_be_continued(written, tmp_path):
    path, expected = written
    copy = tmp_path / "copy"
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("*.json"))
    with BinlogWriter(RealDisk(copy)) as writer:
        assert writer.state == BinlogDirectory(RealDisk(path)).state()
    directory = BinlogDirectory(RealDisk(copy))
    assert groups_behind(directory, directory.start_of_file().state.position()) == expected["groups"]


def test_spark_reads_every_event(spark, written):
    path, expected = written
    rows = spark.read.format("ibb").option("granularity", "events").load(str(path)).collect()
    raw = [bytes(row["data"]) for row in rows]
    assert [[data[4], len(data), hashlib.sha1(data).hexdigest()] for data in raw] == [
        event for group in expected["groups"] if group["gtid"] for event in group["events"]
    ]
