import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.log import Log
from ibbmaster.errors import ClassicFormatError, DamageError, GtidError, PositionPurgedError
from tests.damage import flip
from tests.written_log import append_all

ROOT = Path(__file__).parents[2]
IBB = ROOT / "fixtures" / "ibb"
CLASSIC = ROOT / "fixtures" / "classic" / "10.11"
DOMAINS = {"ibb files": IBB / "domains", "traditional files": CLASSIC / "domains"}
DOMAINS_END = "0-2-27,1-77-4611686023427388938,2-4294967295-34,7-2-29,4294967295-77-32"


@pytest.fixture(params=DOMAINS.values(), ids=DOMAINS)
def domains(request) -> Iterator[Log]:
    with ibbmaster.open(request.param) as log:
        yield log


def gtids(groups):
    return [str(group.gtid) for group in groups]


def test_a_log_says_what_it_has(domains):
    assert str(domains.position) == DOMAINS_END
    assert domains.state.position() == domains.position
    sizes = {file.name: file.size for file in domains.files}
    assert sizes == {path.name: path.stat().st_size for path in domains.path.iterdir() if path.name in sizes}
    assert sorted(sizes) == list(sizes)


def test_both_kinds_of_files_have_the_same_groups_and_say_where_a_dump_starts():
    ours, theirs = (ibbmaster.open(path) for path in DOMAINS.values())
    assert [[event.type for event in group.events()] for group in ours] == [
        [event.type for event in group.events()] for group in theirs
    ]
    assert gtids(ours) == gtids(theirs)
    with ibbmaster.open(CLASSIC / "domains") as log:
        found = log.seek("")
        assert str(found.place) == f"{found.file_name} offset {found.place.offset}"


def position_after(groups):
    return ibbmaster.GtidState(group.gtid for group in groups).position()


def test_groups_after_a_position_are_those_a_replica_there_lacks(domains):
    groups = list(domains)
    for count in (0, 1, 7, 60, len(groups)):
        position = position_after(groups[:count])
        assert gtids(domains.groups(after=position)) == gtids(groups[count:]), count
        assert gtids(domains.groups(after=str(position))) == gtids(groups[count:]), count


# As mysql-test/suite/binlog_in_engine/mysqlbinlog.test
def test_groups_until_a_position_end_with_its_gtids(domains):
    groups = list(domains)
    for count in (1, 7, 60, len(groups)):
        assert gtids(domains.groups(until=position_after(groups[:count]))) == gtids(groups[:count]), count
    first, last = position_after(groups[:20]), position_after(groups[:50])
    assert gtids(domains.groups(after=first, until=last)) == gtids(groups[20:50])
    assert gtids(domains.groups(after=last, until=first)) == []


def test_a_domain_that_until_does_not_name_has_no_groups(domains):
    wanted = [gtid for gtid in gtids(domains) if gtid.startswith("7-")]
    assert gtids(domains.groups(until="7-2-29")) == wanted
    assert gtids(domains.groups(until=ibbmaster.Gtid.parse("7-2-29"))) == wanted
    assert gtids(domains.groups(until="")) == []


UNKNOWN = {
    "a number that is not logged yet": ("0-2-28", "GTID 0-2-28 is not in this log, which has domain 0 up to 0-2-27"),
    "a server that logged nothing": ("0-9-1", "GTID 0-9-1 is not in this log"),
    "a domain there is not": ("5-1-1", "GTID 5-1-1 is not in this log, which has nothing of domain 5"),
}


@pytest.mark.parametrize("argument", ["after", "until"])
@pytest.mark.parametrize(("gtid", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_gtid_that_is_not_in_the_log_is_refused_before_a_group_is_given(domains, argument, gtid, message):
    with pytest.raises(ibbmaster.PositionError, match=message):
        domains.groups(**{argument: gtid})


def test_what_is_no_position_or_no_table_is_refused(domains):
    for ask in (domains.seek, lambda position: domains.groups(after=position)):
        with pytest.raises(GtidError, match="'noon' is not a valid GTID"):
            ask("noon")
    with pytest.raises(ibbmaster.ConfigurationError, match=r"no group in .* changes rows of table no\.where"):
        domains.to_arrow(table="no.where")


def test_a_position_whose_files_are_gone_is_refused_and_without_one_the_groups_begin_with_the_oldest_file(tmp_path):
    shutil.copytree(IBB / "types", tmp_path / "log")
    whole = gtids(ibbmaster.open(tmp_path / "log"))
    (tmp_path / "log" / "binlog-000000.ibb").unlink()
    with ibbmaster.open(tmp_path / "log") as log:
        with pytest.raises(PositionPurgedError, match="Add the files before it"):
            log.groups(after="")
        assert log.seek("").refusal == "the position is too old"
        rest = gtids(log)
    assert 0 < len(rest) < len(whole)
    assert rest == whole[-len(rest) :]


def test_seek_explains_where_a_dump_begins_or_why_there_is_none(domains):
    groups = list(domains)
    found = domains.seek(position_after(groups[:100]))
    assert found.refusal is None
    assert found.explain().splitlines()[0] == f"position [{position_after(groups[:100])}]"
    assert f"start at {found.file_name}" in found.explain()
    refused = domains.seek("0-2-28")
    assert "which is not in the master's binlog" in (refused.refusal or "")
    assert refused.explain().splitlines()[1:] == [f"  refused: {refused.refusal}", f"  because: {refused.reason}"]


def test_damage_ends_the_groups_with_its_place_and_verify_goes_on_behind_it(tmp_path):
    shutil.copytree(IBB / "types", tmp_path / "log")
    flip(tmp_path / "log" / "binlog-000001.ibb", 40_000)
    log = ibbmaster.open(tmp_path / "log")
    groups = log.groups(after="")
    with pytest.raises(ibbmaster.FormatError, match=r"binlog-000001.ibb page 2 offset 0: page checksum"):
        gtids(groups)
    check = log.verify()
    faults = list(check)
    assert [str(fault.location) for fault in faults if fault.location] == ["binlog-000001.ibb page 2 offset 0"]
    assert check.totals.files == 4


def test_a_damaged_traditional_file_is_told_with_its_place(tmp_path):
    shutil.copytree(CLASSIC / "domains", tmp_path / "log")
    flip(tmp_path / "log" / "binlog.000003", 2_000)
    log = ibbmaster.open(tmp_path / "log")
    with pytest.raises(ClassicFormatError, match=r"binlog.000003 offset \d+: "):
        list(log)
    (fault,) = log.verify()
    assert str(fault).startswith("binlog.000003 offset ")


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_sound_log_has_no_fault_and_all_of_it_was_read(domains, jobs):
    heard = []
    check = domains.verify(jobs=jobs, on_bytes=heard.append)
    assert list(check) == []
    assert check.totals.groups == 155
    assert sum(heard) > 20_000


HELD = """
import sys, threading
from pathlib import Path
import ibbmaster

def use(path):
    with ibbmaster.create(path / "log", max_file_bytes="256K") as log, ibbmaster.serve(log, tls="off"):
        log.append("0-1-1", "CREATE DATABASE x")
        assert [len(group) for group in list(log)] == [2]
    with ibbmaster.open(path / "log") as log:
        assert [len(group) for group in list(log)] == [2]
        assert list(log.verify(jobs=2)) == []
        log.back_up(path / "copy")
        assert log.to_arrow().num_rows == 0
    with ibbmaster.open(sys.argv[2]) as log:
        assert len(list(log)) == 155
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

print({use(Path(sys.argv[1]) / str(number)) for number in range(4)})
"""


def test_what_is_closed_holds_no_descriptor_and_no_thread(tmp_path):
    command = [sys.executable, "-c", HELD, tmp_path, CLASSIC / "domains"]
    environment = {**os.environ, "IBBMASTER_KERNELS": "off"}  # or a thread compiles them meanwhile
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.count("(") == 1, f"descriptors and threads after each use: {done.stdout}"


LIGHT = """
import json, sys
import ibbmaster
with ibbmaster.open(sys.argv[1]) as log:
    rows = eval(sys.argv[2])
print(json.dumps([rows, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
READINGS = {  # what is read, and what nobody needs for it
    "sum(len(list(g.rows())) for g in log.groups(until='0-1-50'))": "trio numpy pyarrow pyspark cryptography pymysql",
    "log.to_arrow(table='types.strings').num_rows": "pyspark py4j trio",  # of a small log
}


@pytest.mark.parametrize(("reading", "others"), READINGS.items(), ids=["groups", "a table as Arrow"])
def test_reading_needs_nothing_but_the_package_and_arrow_neither_spark_nor_a_compiler(reading, others):
    command = [sys.executable, "-c", LIGHT, IBB / "types", reading]
    rows, modules = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert rows > 0
    assert not {*others.split()} & set(modules)


def test_columns_have_the_types_that_spark_reads():
    from ibbmaster.tables.arrow.options import parse_options
    from ibbmaster.tables.arrow.plan import find_fields
    from ibbmaster.tables.arrow.shape import arrow_schema

    options = parse_options({"path": str(IBB / "types"), "table": "types.strings"})
    with ibbmaster.open(IBB / "types") as log:
        assert log.to_arrow(table="types.strings").schema == arrow_schema(find_fields(options))
        picked = log.to_arrow(table="types.strings", columns=["_gtid", "id"], until="0-1-20")
        assert picked.column_names == ["_gtid", "id"]


def test_without_a_table_there_are_all_changes_as_texts(domains):
    found = domains.to_arrow(after="0-2-10", until="0-2-20", columns=["_gtid", "_table", "after"])
    expected = [str(group.gtid) for group in domains.groups(after="0-2-10", until="0-2-20") for _ in group.rows()]
    assert list(dict.fromkeys(row["_gtid"] for row in found.to_pylist())) == list(dict.fromkeys(expected))
    assert found.column_names == ["_gtid", "_table", "after"]


def test_groups_that_a_killed_writer_left_in_its_redo_log_are_read_and_not_left_out_of_a_table(tmp_path):
    source = list(ibbmaster.open(IBB / "xa-and-ddl").groups(until="0-1-14"))
    writer = ibbmaster.create(tmp_path, has_background=False)
    append_all(writer, source)
    writer.store._disk.close()  # the lock goes, and nothing is brought to the files: as when the process is killed
    log = ibbmaster.open(tmp_path)
    assert gtids(log) == [str(group.gtid) for group in source]
    with pytest.raises(DamageError, match=r"0-1-14 are in the redo log .* `ibbmaster recover` brings them there"):
        log.to_arrow(table="shop.parent")
    ibbmaster.open(tmp_path, writable=True).close()
    assert log.to_arrow(table="shop.parent").num_rows == 7


def test_a_verification_says_what_it_is_of_and_how_far_it_is(domains):
    check = domains.verify()
    begins = f"<LogVerification of {domains.path}, "
    assert repr(check) == f"{begins}not begun: 0 files, 0 event groups: 0 faults, 0 notes>"
    assert list(check) == []
    assert repr(check).startswith(f"{begins}done: {len(domains.files)} files, ")
    assert f"{len(list(domains))} event groups" in repr(check)
