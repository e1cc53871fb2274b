"""The data of LOAD DATA becomes files that the statement names."""

import struct
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import EventError, StoreError
from ibbmaster.event.types import EventType
from ibbmaster.printing.load_files import LoadFiles
from tests.machinery.events import make_event

CLASSIC = Path(__file__).parents[2] / "fixtures" / "classic" / "11.8"
BEGIN, APPEND, DELETE = EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK, EventType.DELETE_FILE


def part(event_type, data, number=1):
    return make_event(event_type, 1, struct.pack("<I", number) + data)


def test_a_logged_load_names_its_file(tmp_path):
    loads = LoadFiles(tmp_path / "data")
    with ibbmaster.open(CLASSIC / "statement") as log:
        (group,) = log.groups(after="0-1-28", until="0-1-29")
        loads.begin(str(group.gtid))
        for event in group.events():
            if event.header.event_type in (BEGIN, APPEND):
                loads.take(event.data)
            elif event.header.event_type == EventType.EXECUTE_LOAD_QUERY:
                text = loads.statement(event.data).text
    path = tmp_path / "data" / "load-0-1-29-1"
    assert text.startswith(b"LOAD DATA LOCAL INFILE '%s' REPLACE INTO TABLE `l` FIELDS" % str(path).encode())
    assert path.stat().st_size == 148108
    assert path.read_bytes()[:2] == b"0,"


def test_blocks_follow_each_other_and_a_file_that_was_dropped_goes(tmp_path):
    loads = LoadFiles(tmp_path)
    loads.begin("0-1-2")
    loads.take(part(BEGIN, b"one"))
    loads.take(part(APPEND, b"two"))
    assert (tmp_path / "load-0-1-2-1").read_bytes() == b"onetwo"
    loads.take(part(DELETE, b""))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (part(APPEND, b"", 5), "data of LOAD DATA in file 5, which did not begin"),
        (make_event(BEGIN, 1, b"\1"), "data of LOAD DATA in 1 bytes"),
    ],
)
def test_what_does_not_fit_is_an_error(tmp_path, event, problem):
    with pytest.raises(EventError, match=problem):
        LoadFiles(tmp_path).take(event)


def test_without_a_directory_it_is_refused():
    with pytest.raises(EventError, match=r"LOAD DATA in statement format.*name a directory"):
        LoadFiles(None).take(part(BEGIN, b""))


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/load--1: cannot be written"):
        LoadFiles(tmp_path / "file").take(part(BEGIN, b""))
