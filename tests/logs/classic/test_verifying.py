import random
import shutil

import pytest

import ibbmaster
from ibbmaster.errors import ClassicFormatError
from ibbmaster.kernel import loading
from ibbmaster.logs.classic import verifying
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.rows.partial import encode_fragments
from ibbmaster.replication.event.types import EventType
from tests.built_logs import CLASSIC, ClassicFileBuilder


def faults_of(directory):
    with ibbmaster.open(directory) as log:
        return [str(fault) for fault in log.verify()]


@pytest.fixture
def files(tmp_path):
    shutil.copytree(CLASSIC / "10.11/domains", tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_missing_file_is_a_fault(files):
    (files / "binlog.000004").unlink()
    [fault] = faults_of(files)
    assert "files between binlog.000003 and binlog.000005 are missing, or they are not of one binlog" in fault
    with ibbmaster.open(files) as log, pytest.raises(ClassicFormatError) as refusal:
        list(log.groups())
    assert str(refusal.value).rpartition(": ")[2] == fault.rpartition(": ")[2]


@pytest.mark.parametrize("flag", [0, 1])
def test_a_last_file_that_is_cut_is_a_fault_and_only_a_note_while_it_is_in_use(files, flag):
    for path in sorted(files.glob("binlog.00*"))[1:]:
        path.unlink()
    path = files / "binlog.000001"
    data = bytearray(path.read_bytes()[:-60])
    data[21] = data[21] & 0xFE | flag
    path.write_bytes(data)
    with ibbmaster.open(files) as log:
        [fault] = log.verify()
    assert fault.is_damage != flag
    assert str(fault.problem).startswith("binlog.000001 offset 8557: ")


def test_a_file_of_another_server_is_one_and_so_is_what_follows_it(files):
    shutil.copy(CLASSIC / "10.11/chained/binlog.000001", files / "binlog.000003")
    before, behind = faults_of(files)
    assert "files between binlog.000002 and binlog.000003 are missing, or they are not of one binlog" in before
    assert "files between binlog.000003 and binlog.000004 are missing, or they are not of one binlog" in behind


def test_a_file_of_another_version_without_a_start_of_its_server_is_a_fault(files):
    shutil.copy(CLASSIC / "11.8/domains/binlog.000004", files)  # the same groups were logged before it
    there, after = faults_of(files)
    assert there.startswith("binlog.000004: MariaDB 11.8.")
    assert after.startswith("binlog.000005: MariaDB 10.11.")
    assert all(
        fault.endswith("without a start of a server between them: they are not of one binlog")
        for fault in (there, after)
    )


def test_files_without_groups_that_are_missing_are_a_note(files):
    (files / "binlog.000009").unlink()
    (files / "binlog.000008").rename(files / "binlog.000011")
    assert faults_of(files) == [
        "note: binlog.000011: files between binlog.000007 and binlog.000011 are not here; no event group is missing",
        "note: binlog.000011: its server went on in another file after it, which is not here",
    ]
    assert faults_of(files / "binlog.000011") == []  # one file is all that was asked for


def test_files_that_an_index_names_and_that_are_not_there_are_notes(files):
    index = files / "binlog.index"
    index.write_text("".join(f"/var/lib/mysql/{path.name}\n" for path in sorted(files.glob("binlog.00*"))))
    assert faults_of(files) == []
    index.write_text(index.read_text() + "./binlog.000010\n./\x1b[31m\n")
    assert faults_of(files) == [
        "note: binlog.index names \\u001b[31m, which is not here",
        "note: binlog.index names binlog.000010, which is not here",
    ]


def test_behind_damage_the_numbers_of_files_still_tell_of_a_gap(files):
    path = files / "binlog.000002"
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    assert len(faults_of(files)) == 1
    (files / "binlog.000003").unlink()
    _, gap = faults_of(files)
    assert gap.startswith("binlog.000004: files between binlog.000002 and binlog.000004 are missing")


WRONG = {  # the fragments that stand in a file, by number, and what is said of them
    "as they were written": ((0, 1, 2, 3), ""),
    "one is lost": ((0, 2, 3), "row event fragment 3 of 4, expected 2"),
    "the last is lost": ((0, 1, 2), "fragment 4 of 4 is missing"),
    "one is repeated": ((0, 1, 1, 2, 3), "row event fragment 2 of 4, expected 3"),
    "two changed places": ((0, 2, 1, 3), "row event fragment 3 of 4, expected 2"),
}


@pytest.mark.parametrize("with_checksums", [True, False])
@pytest.mark.parametrize(("numbers", "problem"), WRONG.values(), ids=WRONG)
def test_fragments_that_are_no_row_event_are_named_with_file_offset_and_group(
    numbers, problem, with_checksums, tmp_path
):
    whole = encode_event(event_type=EventType.WRITE_ROWS_V1, body=bytes(200), server_id=1)
    fragments = list(encode_fragments(whole, 60))
    file = ClassicFileBuilder(with_checksums=with_checksums)
    file.add(EventType.GTID_LIST, bytes(4))
    places = []
    for seq_no in (1, 2, 3):
        places.append(len(file.data))
        file.begin_group(seq_no)
        for number in numbers if seq_no == 2 else range(4):
            file.add(EventType.PARTIAL_ROW_DATA, fragments[number][19:])
        file.add(EventType.XID, bytes(8))
    (tmp_path / "binlog.000001").write_bytes(file.data)
    found = faults_of(tmp_path)
    assert len(found) == bool(problem)
    if problem:
        assert found[0].startswith(f"binlog.000001 offset {places[1]}: group 0-1-2: ")
        assert problem in found[0]


CHANGES = {
    "a bit": lambda data, at, rng: data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :],
    "a byte less": lambda data, at, rng: data[:at] + data[at + 1 :],
    "its end": lambda data, at, rng: data[:at],
    "a piece twice": lambda data, at, rng: data[:at] + data[max(0, at - rng.randrange(200)) :],
    "zeros": lambda data, at, rng: data[:at] + bytes(min(60, len(data) - at)) + data[at + 60 :],
    "nothing": lambda data, at, rng: data,
}


CAPTURES = ["10.11/domains", "10.11/group-commit", "11.8/ddl-trx-xa", "11.8/domains-none", "11.8/types-full-crc32"]


@pytest.fixture
def found_by(tmp_path, monkeypatch):
    def find(ready, jobs=1):
        monkeypatch.setattr(verifying, "kernels", ready)
        try:
            with ibbmaster.open(tmp_path) as log:
                check = log.verify(jobs=jobs)
                return [(str(fault), fault.is_damage) for fault in check], check.totals.groups
        except ClassicFormatError as error:  # not even its head can be read
            return str(error), 0

    return find


@pytest.mark.parametrize("capture", CAPTURES)
def test_kernels_find_what_the_reference_finds_in_damaged_files(tmp_path, monkeypatch, found_by, capture):
    rng = random.Random(random.randrange(2**32))
    block_bytes = rng.choice([700, 5000, 1 << 20])
    monkeypatch.setattr(verifying, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(verifying, "LONG_BYTES", rng.choice([1, block_bytes // 2, block_bytes]))
    shutil.copytree(CLASSIC / capture, tmp_path, dirs_exist_ok=True)
    paths = [path for path in sorted(tmp_path.glob("binlog.0*")) if path.suffix[1:].isdigit()]
    groups = 0
    for _ in range(40):
        path = rng.choice(paths)
        whole = path.read_bytes()
        data = bytearray(rng.choice(list(CHANGES.values()))(whole, rng.randrange(4, len(whole)), rng))
        if rng.random() < 0.5:
            data[21] = data[21] & 0xFE | 1  # in use
        path.write_bytes(data)
        found = found_by(loading.load)
        assert found == found_by(lambda: None) == found_by(loading.load, jobs=2)
        groups += found[1]
        path.write_bytes(whole)
    assert groups > 13


@pytest.mark.parametrize("with_checksums", [True, False])
@pytest.mark.parametrize("ends", ["by XID", "by COMMIT", "not here"])
def test_kernels_find_what_the_reference_finds_in_each_place_of_a_group_of_several_blocks(
    tmp_path, monkeypatch, found_by, with_checksums, ends
):
    monkeypatch.setattr(verifying, "BLOCK_BYTES", 256)
    monkeypatch.setattr(verifying, "LONG_BYTES", 32)
    whole = ClassicFileBuilder(with_checksums=with_checksums)
    whole.add(EventType.GTID_LIST, bytes(4))
    start = len(whole.data)
    for seq_no in (1, 2, 3):
        whole.begin_group(seq_no)
        for size in (700, 3, 256, 5) if seq_no == 2 else (30,):
            whole.add(EventType.WRITE_ROWS_V1, bytes(size))
        if seq_no == 2 and ends != "by XID":
            whole.add(EventType.QUERY, bytes(13) + b"\0" + (b"COMMIT" if ends == "by COMMIT" else b"COMMAS"))
        else:
            whole.add(EventType.XID, bytes(8))
    path, taken = tmp_path / "binlog.000001", 0
    real = verifying.GroupChecks._check_long
    for at in [None, *range(start, len(whole.data), 7)]:
        data = bytearray(whole.data)
        if at is not None:
            data[at] ^= 1 << at % 8
        path.write_bytes(data)
        assert found_by(loading.load) == found_by(lambda: None), at
    monkeypatch.setattr(verifying, "kernels", loading.load)
    path.write_bytes(whole.data)

    def counted(*arguments):
        nonlocal taken
        long = real(*arguments)
        taken += long is not None
        return long

    monkeypatch.setattr(verifying.GroupChecks, "_check_long", counted)
    faults_of(tmp_path)
    assert (taken > 0) == (ends != "not here")
