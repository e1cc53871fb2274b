import itertools
import json
import random
import re
import shutil
import struct

import pytest

import ibbmaster
from ibbmaster.errors import IbbMasterError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.logs.classic.archives import find_files
from ibbmaster.replication.event.types import EventType
from tests.built_logs import CLASSIC, FIXTURES, ClassicFileBuilder
from tests.case_table import rows_of
from tests.machinery.packers import PACK

RECORDED = FIXTURES / "archives" / "operator"  # servers 1, 2, 1 and 2 were the primary
IN_TURN = [
    *("server-1/binlog.000001", "server-1/binlog.000002", "server-2/binlog.000001", "server-2/binlog.000002"),
    *("server-1/binlog.000003", "server-1/binlog.000004", "server-2/binlog.000003", "server-2/binlog.000004"),
]
GTIDS = [f"0-{1 if number <= 7 or 13 <= number <= 17 else 2}-{number}" for number in range(1, 23)]


def names(archive):
    return [file.name for file in find_files([archive])]


def read_of(archive):
    """The GTIDs that are read, and the error after them."""
    found = []
    try:
        with ibbmaster.open(archive) as log:
            found += [str(group.gtid) for group in log.groups()]
    except IbbMasterError as error:
        return found, str(error)
    return found, None


@pytest.fixture
def archive(tmp_path):
    return shutil.copytree(RECORDED, tmp_path / "archive")


@pytest.fixture
def wal_g(tmp_path):
    """A whole log as wal-g keeps it by default."""
    (tmp_path / "binlog_005").mkdir()
    for path in (CLASSIC / "11.8/domains").glob("binlog.??????"):
        (tmp_path / "binlog_005" / f"{path.name}.lz4").write_bytes(PACK[".lz4"](path.read_bytes()))
    return tmp_path


def built_file(previous, gtids):
    """A file whose server lists some GTIDs before it."""
    file = ClassicFileBuilder()
    listed = b"".join(struct.pack("<IIQ", one.domain_id, one.server_id, one.seq_no) for one in previous)
    file.add(EventType.GTID_LIST, struct.pack("<I", len(previous)) + listed)
    for one in gtids:
        gtid = struct.pack("<QIB", one.seq_no, one.domain_id, 1) + bytes(6)
        file.add(EventType.GTID, gtid, server_id=one.server_id)
        file.add(EventType.QUERY, bytes(14) + b"x", server_id=one.server_id)
    return bytes(file.data)


def made(directory, files):
    """An archive of (server id, number of the file, GTIDs before, in the file)."""
    for server_id, number, previous, gtids in files:
        path = directory / f"server-{server_id}" / f"bin.{number}"
        path.parent.mkdir(exist_ok=True)
        before, inside = ([Gtid.parse(one) for one in text.split()] for text in (previous, gtids))
        path.write_bytes(built_file(before, inside))
    return directory


def test_files_of_servers_that_took_turns_are_one_log(archive, run):
    assert names(archive) == IN_TURN
    assert read_of(archive) == (GTIDS, None)
    assert run("verify", "--strict", archive)[0] == 0
    assert run("convert", archive, archive.parent / "ibb")[0] == 0
    assert run("diff", archive, archive.parent / "ibb")[0] == 0
    assert "start at server-2/binlog.000002 offset 4, state [0-1-7,0-2-9]" in run("seek", archive, "0-2-9")[1]
    assert "server-2/binlog.000003" in run("info", archive)[1]
    assert names(archive / "server-2") == [f"binlog.00000{number}" for number in range(1, 5)]
    assert run("cat", archive, "--after", "0-1-7", "--until", "0-1-13")[1].count('"gtid":') == 6


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_an_archive_in_an_object_store_is_read_whatever_packs_it(object_store, suffix, archive):
    import gzip

    url = object_store.new_place()
    for path in archive.glob("server-*/*"):
        data = PACK.get(suffix, bytes)(gzip.decompress(path.read_bytes()))
        object_store.put(f"{url}/{path.parent.name}/{path.name.removesuffix('.gz')}{suffix}", data)
    object_store.put(f"{url}/index.yaml", (archive / "index.yaml").read_bytes())
    assert read_of(url) == (GTIDS, None)


@pytest.mark.parametrize("missing", range(8))
@pytest.mark.parametrize("has_index", [True, False], ids=["indexed", "no index"])
def test_a_missing_file_is_named_before_anything_is_read(archive, missing, has_index):
    """Without an index nothing tells that the first or the last file has been there."""
    path = archive / f"{IN_TURN[missing]}.gz"
    path.unlink()
    if not has_index:
        (archive / "index.yaml").unlink()
    found, error = read_of(archive)
    if has_index:
        assert f"index.yaml names {IN_TURN[missing]}, which is not here" in error
    elif missing in (0, 7):
        assert error is None
    else:
        assert f"{IN_TURN[missing - 1]} ends at [" in error
        assert f"{IN_TURN[missing + 1]} lists [" in error
    assert not error or not found


@pytest.mark.parametrize("damaged", range(8))
def test_nothing_is_read_behind_a_damaged_file(archive, damaged):
    path = archive / f"{IN_TURN[damaged]}.gz"
    whole, rng = path.read_bytes(), random.Random(damaged)
    cuts = [whole[:size] for size in range(0, len(whole), 23)]
    flips = [(at, 1 << rng.randrange(8)) for at in range(10, len(whole), 17)]
    flipped = [whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :] for at, bit in flips]
    for data in cuts + flipped:
        path.write_bytes(data)
        found, error = read_of(archive)
        assert (found, error) == (GTIDS, None) or IN_TURN[damaged] in str(error).replace(str(archive), "")
        assert found == GTIDS[: len(found)]
        last = (4, 7, 9, 12, 14, 17, 19, 22)[damaged]
        assert error is None or int(GTIDS[len(found)].rpartition("-")[2]) <= last


CONTRADICTIONS = {
    "first": ("firstGtid: 0-2-10", "firstGtid: 0-2-11"),
    "first of an empty file": ("firstGtid: 0-2-10", "firstGtid: null"),
    "last": ("lastGtid: 0-2-12", "lastGtid: 0-2-13"),
    "listed": ("    - 0-2-9", "    - 0-2-8"),
    "a file that is not here": ("binlogFilename: binlog.000002\n    firstGtid: 0-2-10", "binlogFilename: x.000009"),
    "no GTID": ("firstGtid: 0-2-10", "firstGtid: ten"),
    "another text": ("  server-2:", "  <server-2>"),
    "a tab": ("  server-2:", "\tserver-2:"),
}


@pytest.mark.parametrize(("text", "other"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_an_index_that_contradicts_the_files_is_refused_by_name(archive, text, other):
    index = archive / "index.yaml"
    assert text in index.read_text()
    index.write_text(index.read_text().replace(text, other))
    with pytest.raises(StoreError, match=r"index\.yaml"):
        names(archive)


def test_any_flipped_bit_of_an_index_is_found_or_does_not_matter(archive):
    index = archive / "index.yaml"
    whole, rng = index.read_bytes(), random.Random(7)
    for _ in range(100):
        at = rng.randrange(len(whole))
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        found, error = read_of(archive)
        assert (found, error) == (GTIDS, None) or "index.yaml" in str(error)


TIMELINES = [list(rows) for _, rows in itertools.groupby(rows_of(__file__, "timelines"), lambda row: row[0])]
LACKING = {  # the file before the gap, and the one after it
    "failover": r"server-10/bin\.000005 ends at \[0-10-69\], and server-11/bin\.000001 .* begins with 0-11-71",
    "failover-no-stop-event": r"server-11/bin\.000001 ends at \[0-10-70,0-11-88\], and server-10/bin\.000007",
    "failover-1205-1208": r"server-11/bin\.000009 ends at \[0-10-70,0-11-224\], and server-10/bin\.000007",
}


@pytest.mark.parametrize("rows", TIMELINES, ids=[rows[0][0] for rows in TIMELINES])
def test_the_incidents_of_the_operator_are_put_in_order_or_refused(tmp_path, rows):
    """Their facts are those of its own tests; after each failover a server did not archive the end of its log."""
    files = []
    for _, server, number, previous, *ends in rows:
        first, last = (int(gtid.rpartition("-")[2] or 0) for gtid in ends)
        gtids = [f"0-{server}-{seq_no}" for seq_no in range(first, last + 1) if seq_no]
        files.append((int(server), number, previous.replace(",", " "), " ".join(gtids)))
    problem = LACKING.get(rows[0][0])
    found, error = read_of(made(tmp_path, files))
    if problem:
        assert re.search(problem, str(error))
    else:
        ends = [last for *_, last in rows if last]
        assert (found[0], found[-1], error) == ("0-10-1", ends[-1], None)


def test_a_replica_that_logs_all_of_its_primary_stands_for_both(tmp_path):
    files = [(1, "000001", "", "0-1-1 0-1-2"), (1, "000002", "0-1-2", "0-1-3")]
    files += [(2, "000001", "", "0-1-1"), (2, "000002", "0-1-1", "0-1-2 0-1-3 0-2-4")]
    assert names(made(tmp_path, files)) == ["server-2/bin.000001", "server-2/bin.000002"]


REFUSED = {  # files -> what is said
    "a fork": (
        [(1, "000001", "", "0-1-1 0-1-2 0-1-3"), (2, "000001", "", "0-2-3 0-2-4")],
        r"server-1/bin\.000001 ends at \[0-1-3\], and server-2/bin\.000001 lists \[\] and begins with 0-2-3",
    ),
    "two that go on": (
        [(1, "000001", "", "0-1-1"), (2, "000001", "", "0-2-2"), (3, "000001", "", "0-3-2")],
        r"ends at \[0-1-1\], and server-2/bin\.000001 .* begins with 0-2-2 and server-3/bin\.000001 .* 0-3-2",
    ),
    "two that begin": (
        [(1, "000001", "", "0-1-1"), (2, "000001", "", "0-2-1")],
        r"an archive begins, and server-1/bin\.000001 .* and server-2/bin\.000001",
    ),
    "domains of their own": ([(1, "000001", "", "1-1-1"), (2, "000001", "", "2-2-1")], "an archive begins, and"),
    "a server that has logged more": (
        [(1, "000001", "", "0-1-1 0-1-2"), (2, "000001", "0-9-1", "0-2-3")],
        r"server-2/bin\.000001 lists \[0-9-1\]",
    ),
    "what is before a file without transactions": (
        [(1, "000001", "", "0-1-1"), (2, "000001", "0-2-2", "")],
        r"ends at \[0-1-1\], and server-2/bin\.000001 lists \[0-2-2\] and begins with no transaction: files between",
    ),
    "a file between them": ([(1, "000001", "", "0-1-1"), (2, "000001", "", "0-2-3")], "files between them are missing"),
    "a domain that does not go on": (
        [(1, "000001", "", "0-1-1 1-1-1"), (2, "000001", "", "0-2-2 1-2-3")],
        r"begins with 0-2-2,1-2-3: files between them are missing, or the servers have gone apart; .*server-2 alone",
    ),
}


@pytest.mark.parametrize(("files", "problem"), REFUSED.values(), ids=REFUSED)
def test_servers_whose_order_is_not_clear_are_refused_with_both_states(tmp_path, files, problem):
    with pytest.raises(StoreError, match=problem):
        names(made(tmp_path, files))


def test_a_log_that_is_read_takes_the_next_files_in_their_turn_and_waits_while_that_is_unclear(tmp_path, caplog):
    first = [(1, "000001", "", "0-1-1 0-1-2"), (2, "000001", "", "0-2-3")]
    with ibbmaster.open(made(tmp_path, first)) as log:
        assert str(log.position) == "0-2-3"
        made(tmp_path, [(1, "000002", "0-1-2", "0-1-6")])
        assert (str(log.position), len(log.files)) == ("0-2-3", 2)
        assert "server-2/bin.000001 ends at [0-1-2,0-2-3], and server-1/bin.000002" in caplog.text
        made(tmp_path, [(2, "000002", "0-2-3", "0-2-4 0-2-5"), (1, "000003", "0-1-6", "0-1-7")])
        whole = (tmp_path / "server-2" / "bin.000002").read_bytes()
        for size in (0, 3, 300, len(whole)):  # as it comes into a directory
            (tmp_path / "server-2" / "bin.000002").write_bytes(whole[:size])
            assert str(log.position) == ("0-1-7" if size == len(whole) else "0-2-3")
        assert (str(log.position), len(log.files)) == ("0-1-7", 5)
        assert [str(group.gtid) for group in log.groups()][2:] == ["0-2-3", "0-2-4", "0-2-5", "0-1-6", "0-1-7"]


def test_an_archive_of_wal_g_is_the_log_of_its_files(wal_g, run):
    (wal_g / "binlog_sentinel_005.json").write_text(json.dumps({"GtidArchived": "0-2-27,7-2-29"}))
    for command in ("info", "verify"):
        assert run(command, wal_g)[0] == 0
    assert run("diff", wal_g, CLASSIC / "11.8/domains")[0] == 0
    with ibbmaster.open(wal_g) as log:
        assert [file.name for file in log.files] == [f"binlog.{number:06}" for number in range(1, 10)]


@pytest.mark.parametrize("number", range(2, 9))
def test_a_missing_file_of_one_server_is_named_whatever_numbers_its_transactions_have(wal_g, number):
    (wal_g / "binlog_005" / f"binlog.{number:06}.lz4").unlink()
    before, after = (f"binlog.{one:06}" for one in (number - 1, number + 1))
    with pytest.raises(StoreError, match=rf"{before} ends at \[.*\], and {after} lists \["):
        ibbmaster.open(wal_g)


SENTINELS = {
    "more than the files have": ('{"GtidArchived":"0-2-28"}', r"\[0-2-28\] is archived, but binlog\.000009 ends at \["),
    "an unknown server": ('{"GtidArchived":"0-99-1"}', "a file is missing"),
    "GTIDs of MySQL": ('{"GtidArchived":"3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5"}', "cannot be read"),
    "no text": ('{"GtidArchived":7}', "cannot be read"),
    "a list": ("[]", "cannot be read"),
    "half of it": ('{"GtidArch', "cannot be read"),
    "nothing": ("", "cannot be read"),
}


@pytest.mark.parametrize(("text", "problem"), SENTINELS.values(), ids=SENTINELS)
def test_a_sentinel_that_contradicts_the_files_is_refused_by_name(wal_g, text, problem):
    (wal_g / "binlog_sentinel_005.json").write_text(text)
    with pytest.raises(StoreError, match=rf"binlog_sentinel_005\.json.*{problem}"):
        ibbmaster.open(wal_g)


UNREAD = {  # name of an object beside the others -> what it holds, what is said
    "binlog.000010.lz4": (b"\x85\x02\x0c\x03" + bytes(99), "encrypted by the program that archived it"),
    "binlog.000010.br": (b"\x85\x02\x0c\x03" + bytes(99), "encrypted by the program that archived it"),
    "binlog.000010.sz": (b"\xff\x06\0\0sNaPpY", "expected a name as binlog.000001"),
    "binlog.000009.gz": (PACK[".gz"](b"\xfebin"), "another file beside it has the same number"),
    "binlog.000010.gz": (b"", "it is damaged"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_an_object_that_cannot_be_read_is_refused_by_name(wal_g, name):
    data, problem = UNREAD[name]
    (wal_g / "binlog_005" / name).write_bytes(data)
    with pytest.raises(StoreError, match=rf"binlog\.0000\d\d\.\w+.*{problem}"):
        ibbmaster.open(wal_g)


@pytest.mark.parametrize("second", ["bin.000001", "other.000001"], ids=["lower numbers", "another name"])
def test_numbers_that_begin_anew_after_a_restore_are_put_in_order(tmp_path, second):
    directory = tmp_path / "binlog_005"
    directory.mkdir()
    gtids = [Gtid.parse(f"0-1-{number}") for number in range(1, 7)]
    (directory / "bin.000050").write_bytes(built_file([], gtids[:2]))
    (directory / "bin.000051").write_bytes(built_file(gtids[1:2], gtids[2:4]))
    (directory / second).write_bytes(built_file(gtids[3:4], gtids[4:]))
    assert read_of(tmp_path) == ([str(one) for one in gtids], None)
    assert names(tmp_path) == ["bin.000050", "bin.000051", second]
