"""A log that is archived while it is written, by the front door."""

import time

import pytest

import ibbmaster
from ibbmaster.api.archiving import archive_figures, archived, join_archive
from ibbmaster.errors import ConfigurationError, PositionError
from tests.built_logs import CLASSIC


def append(log, *numbers):
    for number in numbers:
        log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number})")


def gtids(log):
    return [group.gtid.seq_no for group in log.groups()]


def test_what_is_written_meanwhile_is_archived_at_the_end_and_served_once_it_is_purged(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        with archived(log.store, tmp_path / "to"):
            append(log, 1, 2)
            log.flush()
            append(log, 3)
        with ibbmaster.open(tmp_path / "to") as there:
            assert gtids(there) == [1, 2, 3]
        log.purge(to="binlog-000001.ibb")
        assert gtids(log) == [3]
        join_archive(log, tmp_path / "to")
        with ibbmaster.serve(log, password="x", tls="off") as primary:
            source = f"mysql://repl:x@{primary.host}:{primary.port}"
            with ibbmaster.follow(source, tmp_path / "copy", start="", until_end=True, tls="off") as copy:
                copy.wait()
                assert gtids(copy.log) == [1, 2, 3]


def test_an_archive_is_measured_by_what_it_could_bring_back(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log, archived(log.store, tmp_path / "to") as archiver:
        began = int(time.time())
        append(log, 1, 2)
        archiver.stop()
        figures = {figure.name: figure.value for figure in archive_figures(archiver)}
    assert figures.pop("ibbmaster_archive_last_recoverable_timestamp_seconds") >= began
    assert figures == {"ibbmaster_archive_groups_total": 2, "ibbmaster_archive_failed": 0}


def test_an_archive_of_another_log_is_refused_before_anything_is_written(tmp_path):
    with ibbmaster.create(tmp_path / "one") as log:
        append(log, 1)
        with archived(log.store, tmp_path / "to"):
            pass
    with ibbmaster.create(tmp_path / "two") as log:
        log.append("7-7-7", "CREATE DATABASE shop")
        refused = pytest.raises(PositionError, match="holds another log, or more of it")
        with refused, archived(log.store, tmp_path / "to"):
            pass


def test_a_log_of_traditional_files_is_not_joined(tmp_path):
    refused = pytest.raises(ConfigurationError, match=r"--archive joins an archive to a log of \.ibb files: convert ")
    with ibbmaster.open(CLASSIC / "11.8" / "domains") as log, refused:
        join_archive(log, tmp_path / "to")
