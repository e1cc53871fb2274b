"""What verification says of traditional files is what readers of them say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import ClassicFormatError

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic"


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


def test_a_file_of_another_server_is_one_and_so_is_what_follows_it(files):
    shutil.copy(CLASSIC / "10.11/chained/binlog.000001", files / "binlog.000003")
    before, behind = faults_of(files)
    assert "files between binlog.000002 and binlog.000003 are missing, or they are not of one binlog" in before
    assert "files between binlog.000003 and binlog.000004 are missing, or they are not of one binlog" in behind


def test_behind_damage_the_numbers_of_files_still_tell_of_a_gap(files):
    path = files / "binlog.000002"
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    assert len(faults_of(files)) == 1
    (files / "binlog.000003").unlink()
    _, gap = faults_of(files)
    assert gap.startswith("binlog.000004: files between binlog.000002 and binlog.000004 are missing")
