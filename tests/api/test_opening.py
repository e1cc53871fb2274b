import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import ClassicFormatError, ConfigurationError, MissingFileError, PositionPurgedError

ROOT = Path(__file__).parents[2]
IBB = ROOT / "fixtures" / "ibb"
CLASSIC = ROOT / "fixtures" / "classic" / "10.11"
INSERT = "INSERT INTO shop.orders VALUES (1)"


def gtids(groups):
    return [str(group.gtid) for group in groups]


# To read -------------------------------------------------------------------------------------


def test_a_file_or_an_index_of_traditional_files_is_a_log_too(tmp_path):
    for number in (1, 2):
        shutil.copy(CLASSIC / "domains" / f"binlog.{number:06d}", tmp_path)
    (tmp_path / "binlog.index").write_text("/var/lib/mysql/binlog.000001\n/var/lib/mysql/binlog.000002\n")
    whole = gtids(ibbmaster.open(tmp_path))
    assert gtids(ibbmaster.open(tmp_path / "binlog.index")) == whole
    second = gtids(ibbmaster.open(tmp_path / "binlog.000002"))
    assert 0 < len(second) < len(whole)
    assert second == whole[-len(second) :]


def test_an_empty_directory_is_an_empty_log_until_somebody_writes_there(tmp_path):
    with ibbmaster.open(tmp_path) as log:
        assert (log.files, list(log), str(log.position)) == ([], [], "")
        assert list(log.groups(until="")) == []
        with pytest.raises(ibbmaster.StoreError, match="no binlog files"):
            log.seek("0-1-1")
        with ibbmaster.create(tmp_path, has_background=False) as writer:
            writer.append("0-1-1", "CREATE DATABASE x")
    with ibbmaster.open(tmp_path) as log:
        assert gtids(log) == ["0-1-1"]


def test_a_path_that_is_no_log_is_refused_at_once(tmp_path):
    (tmp_path / "text").write_text("no binlog at all")
    with pytest.raises(MissingFileError, match=r"nothing.*no such file or directory"):
        ibbmaster.open(tmp_path / "nothing")
    with pytest.raises(ClassicFormatError, match="text"):
        ibbmaster.open(tmp_path / "text")


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000], ids=["a zero in it", "too long"])
@pytest.mark.parametrize("find", [ibbmaster.open, ibbmaster.create])
def test_what_can_be_no_path_is_refused(find, path):
    with pytest.raises(ibbmaster.StoreError, match="cannot be the path of a log"):
        find(path)


def test_options_of_writing_are_refused_where_nothing_is_written(tmp_path):
    with pytest.raises(TypeError, match="durability: for a log that is written, with writable=True"):
        ibbmaster.open(tmp_path, durability="sync")


SCHEMAS = {
    "nonsense": r"schema.* expected (CREATE TABLE )?database\.table",
    "CREATE TABLE t (a INT)": r"schema.* expected (CREATE TABLE )?database\.table",
    "CREATE TABLE a.b (c int, d varchar(9": "^schema: the text ends inside a statement: 'CREATE TABLE a",
}


@pytest.mark.parametrize(("schema", "message"), SCHEMAS.items(), ids=SCHEMAS)
def test_a_schema_that_declares_nothing_is_refused(schema, message):
    with pytest.raises(ibbmaster.ConfigurationError, match=message):
        ibbmaster.open(CLASSIC / "domains-none", schema=schema)


# To write ------------------------------------------------------------------------------------


def test_who_writes_is_alone(tmp_path):
    with ibbmaster.create(tmp_path):
        for again, options in ((ibbmaster.open, {"writable": True}), (ibbmaster.create, {"exist_ok": True})):
            with pytest.raises(ibbmaster.BusyError, match="another process is writing here"):
                again(tmp_path, **options)
        with ibbmaster.open(tmp_path) as reader:
            assert list(reader) == []
    ibbmaster.open(tmp_path, writable=True).close()


def test_a_log_that_is_there_is_continued_only_if_that_is_said(tmp_path):
    with ibbmaster.create(tmp_path, state="0-1-9") as log:
        log.append("0-1-10", INSERT)
    with pytest.raises(ibbmaster.StoreError, match=r"holds a log already: ibbmaster.open\(path, writable=True\)"):
        ibbmaster.create(tmp_path)
    with ibbmaster.create(tmp_path, exist_ok=True) as log:
        log.append("0-1-11", INSERT)
    with ibbmaster.open(tmp_path, writable=True) as log:
        log.append("0-1-12", INSERT)
        assert gtids(log) == ["0-1-10", "0-1-11", "0-1-12"]
    with pytest.raises(ibbmaster.PositionError, match="older than the oldest file"):
        ibbmaster.open(tmp_path).groups(after="")


NOT_WRITABLE = {
    "nothing is there": (lambda path: ibbmaster.open(path, writable=True), "no binlog files"),
    "traditional files": (lambda path: ibbmaster.open(path / "classic", writable=True), "which are only read"),
    "a new log over traditional files": (lambda path: ibbmaster.create(path / "classic", exist_ok=True), "holds a log"),
    "a file": (lambda path: ibbmaster.create(path / "classic" / "binlog.000001"), "File exists"),
}


@pytest.mark.parametrize(("attempt", "message"), NOT_WRITABLE.values(), ids=NOT_WRITABLE)
def test_what_cannot_be_written_is_refused(tmp_path, attempt, message):
    (tmp_path / "classic").mkdir()
    (tmp_path / "classic" / "binlog.000001").write_bytes(b"\xfebin")
    with pytest.raises(ibbmaster.StoreError, match=message):
        attempt(tmp_path)
    assert {path.name for path in tmp_path.rglob("*")} == {"classic", "binlog.000001"}


BAD_OPTIONS = {
    "a durability there is not": ({"durability": "maybe"}, "durability 'maybe': expected one of later, sync, write"),
    "a size that is none": ({"max_file_bytes": "many"}, "'many' is not a size"),
    "a file too small": ({"max_file_bytes": "16K"}, "files of 16384 bytes: a file has 65536 bytes at least"),
    "files that expire at once": ({"expire_s": 0}, "expected a number of seconds above 0"),
    "replicas below none": ({"replicas_needed_for_purge": -1}, "expected 0 or more"),
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_an_option_that_cannot_be_used_leaves_nothing_behind(tmp_path, options, message):
    with pytest.raises(ibbmaster.ConfigurationError, match=message):
        ibbmaster.create(tmp_path / "log", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("durability", ["sync", "write", "later"])
def test_what_is_durable_is_there_after_a_crash(tmp_path, durability):
    log = ibbmaster.create(tmp_path, durability=durability, has_background=False)
    log.append("0-1-1", INSERT)
    log.sync()
    log.store._disk.close()  # the lock goes, and nothing is brought to the files: as when the process is killed
    with ibbmaster.open(tmp_path, writable=True) as again:
        assert again.recovered[0] > 0
        assert [str(group.gtid) for group in again] == ["0-1-1"]


@pytest.mark.parametrize("name", ["domains", "large-groups", "types", "xa-and-ddl"])
def test_one_file_of_pages_is_the_part_of_the_log_that_is_in_it(name):
    def contents(log):
        groups = list(log.groups(asks_statements=True))
        return [(group.start.file_no, group.gtid, [repr(row) for row in group.rows()]) for group in groups]

    found = []
    with ibbmaster.open(IBB / name) as whole:
        for file in whole.files:
            with ibbmaster.open(whole.path / file.name) as log:
                assert [one.name for one in log.files] == [file.name]
                found += contents(log)
        assert found == contents(whole)


def test_a_part_of_one_file_is_what_is_in_both():
    with ibbmaster.open(IBB / "types" / "binlog-000001.ibb") as log:
        found = [str(group.gtid) for group in log.through(after="0-1-59", until="0-1-61")]
        with pytest.raises(PositionPurgedError, match="begins after 0-1-58"):
            log.through(after="0-1-57")
    assert found == ["0-1-60", "0-1-61"]


def test_what_reads_whole_logs_refuses_one_file():
    log = ibbmaster.open(IBB / "types" / "binlog-000001.ibb")
    with log, pytest.raises(ConfigurationError, match=r"binlog-000001\.ibb is one file: name .*types"):
        log.verify()
