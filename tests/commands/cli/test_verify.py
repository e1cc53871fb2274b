import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.gtid import Gtid
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.storage.disk import object_directory
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_directory import RangeCache
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.damage import flip
from tests.machinery.events import make_event

IBB = Path(__file__).parents[3] / "fixtures" / "ibb"


def test_verify_finds_no_faults_in_the_samples(run):
    for directory in sorted(IBB.iterdir()):
        code, out, err = run("verify", directory)
        assert (code, err) == (0, ""), out
        assert out.endswith("no faults\n")


def test_verify_ends_with_1_and_names_each_fault(run, tmp_path):
    shutil.copytree(IBB / "types", tmp_path, dirs_exist_ok=True)
    flip(tmp_path / "binlog-000001.ibb", 20000)
    code, out, _ = run("verify", tmp_path)
    assert code == 1
    assert "binlog-000001.ibb page 1 offset 0: page checksum is" in out
    code, out, _ = run("verify", tmp_path, "--json")
    assert code == 1
    assert json.loads(out)["faults"]


@pytest.mark.parametrize("jobs", ["0", "-1", "x", "1025", "9" * 5000, "²"])
def test_verify_refuses_a_number_of_threads_that_makes_no_sense(capsys, run, tmp_path, jobs):
    with pytest.raises(SystemExit):
        run("verify", tmp_path, "--jobs", jobs)
    assert "expected a number from 1 to 1024" in capsys.readouterr().err


def test_traditional_files_are_verified_and_sought_in_too(run, tmp_path):
    classic = IBB.parent / "classic" / "10.11" / "domains"
    code, out, _ = run("verify", classic)
    assert (code, out) == (0, "9 files, 155 event groups: no faults\n")
    assert json.loads(run("verify", classic, "--json")[1])["groups"] == 155
    code, out, _ = run("seek", classic, "")
    assert (code, out) == (0, "position []\nstart at binlog.000001 offset 4, state []\n")
    answer = json.loads(run("seek", classic, "", "--json")[1])
    assert answer == {"gtid_position": "", "file": "binlog.000001", "gtid_state": "", "file_offset": 4}
    shutil.copytree(classic, tmp_path, dirs_exist_ok=True)
    flip(tmp_path / "binlog.000002", 2000)
    code, out, _ = run("verify", tmp_path)
    assert code == 1
    assert out.startswith("binlog.000002 offset ")


def test_damaged_traditional_files_are_faults_or_refused_in_one_line(run, tmp_path, damaged):
    source = IBB.parent / "classic/10.11/checksum-switch/binlog.000003"
    for _ in damaged(source, "binlog.000001", copies=40, seed=3, begin=4):
        code, out, err = run("verify", tmp_path)
        assert (code, bool(out), err.count("\n")) in ((0, True, 0), (1, True, 0), (2, False, 1)), (out, err)
        assert (out + err).replace("\n", "").isprintable()


def fetched_pages(store) -> int:
    ranges = [one.range.removeprefix("bytes=").split("-") for one in store.requests if one.range]
    return sum(int(last) + 1 - int(first) for first, last in ranges) // PAGE_SIZE


@pytest.mark.parametrize("files", [1, 4])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_of_an_object_store_each_page_is_fetched_once(object_store, tmp_path, run, monkeypatch, jobs, files):
    """Also of the file that is ready before it is needed; of one in which two threads meet, the first ones twice."""
    monkeypatch.setattr(object_directory, "BLOCKS", RangeCache(64))
    with closing(RealDisk(tmp_path)) as disk, BinlogWriter(disk, max_file_bytes=256 * PAGE_SIZE) as writer:
        number = 0
        while writer.end.file_no < files - 1 or not number:
            number += 1
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            head = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL))
            writer.write_group(gtid, head, [make_event(23, 1, bytes(100_000)), make_event(16, 1, bytes(8))])
    stored = sum(path.stat().st_size for path in tmp_path.iterdir()) // PAGE_SIZE
    assert stored == (files + 1) * 256  # the last is blank
    url = object_store.copy(tmp_path)
    object_store.requests.clear()
    assert run("verify", "--jobs", jobs, url)[0] == 0
    assert stored <= fetched_pages(object_store) <= stored + (jobs - 1) * 16
    with ibbmaster.open(url) as log:
        monkeypatch.setattr(object_directory, "BLOCKS", RangeCache(64))  # without the pages that opening it has read
        object_store.requests.clear()
        assert list(log.verify(jobs=jobs)) == []
    assert stored <= fetched_pages(object_store) <= stored + (jobs - 1) * 16
