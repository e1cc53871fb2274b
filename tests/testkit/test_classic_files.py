"""Traditional files of a log have its groups, as their readers want them."""

from __future__ import annotations

import pytest
from pymysqlreplication.event import MariadbGtidEvent

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.header import decode_event_header, has_valid_checksum
from ibbmaster.testkit import FixturePrimary


def without_place(data):
    """An event without what its place in a file adds."""
    header = decode_event_header(data)
    return header._replace(size=0, log_pos=0), data[19:]


def events_of(log):
    return [(group.gtid, [without_place(event.data) for event in group.events()]) for group in log.groups()]


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
def test_they_have_the_groups_of_the_log_and_its_files(tmp_path, profile, read_by_python):
    with FixturePrimary(profile=profile) as primary:
        table = primary.table("shop.t", id="int primary key", a="varchar(20)")
        table.insert(id=1)
        primary.log.flush()
        with primary.transaction(domain=3) as transaction:
            table.insert(id=2)
            transaction.prepare("x")
        primary.xa_commit("x")
        primary.log.flush()
        primary.ddl("DROP TABLE shop.t")
        expected = events_of(primary.log)
        paths = primary.save_classic(tmp_path / "files")
        version = primary.server_version
    assert [path.name for path in paths] == [f"binlog.00000{number}" for number in (1, 2, 3)]
    with ibbmaster.open(tmp_path / "files") as log, ibbmaster.serve(log, tls="off") as served:
        assert events_of(log) == expected
        assert log.classic is not None
        assert log.classic.server_version == version
        assert list(log.verify()) == []
        assert read_by_python(served, MariadbGtidEvent) == ["0-1-1", "0-1-2", "0-1-3", "3-1-1", "0-1-4", "0-1-5"]


@pytest.mark.parametrize(("profile", "has_all"), [("classic-10.11", True), ("classic-11.8", False)])
def test_events_say_where_they_end_and_have_checksums(tmp_path, profile, has_all):
    with FixturePrimary(profile=profile) as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        (path,) = primary.save_classic(tmp_path / "files")
    data, offset, ends = path.read_bytes(), 4, []
    while offset < len(data):
        header = decode_event_header(data, offset)
        assert has_valid_checksum(data[offset : offset + header.size])
        offset += header.size
        assert header.log_pos in (offset, 0)
        ends.append(header.log_pos != 0)
    head, ddl, end = 3 * [True], 4 * [True], [True, True]
    assert ends == [*head, *ddl, True, *2 * [has_all], *end]  # TABLE_MAP and rows are inside


def test_an_empty_log_is_an_empty_file(tmp_path):
    with FixturePrimary(profile="classic-11.8") as primary:
        assert len(primary.save_classic(tmp_path / "files")) == 1
    with ibbmaster.open(tmp_path / "files") as log:
        assert events_of(log) == []


def test_what_cannot_be_written_is_refused(tmp_path):
    with (
        FixturePrimary() as primary,
        pytest.raises(ConfigurationError, match="a primary as 'engine' has no traditional"),
    ):
        primary.save_classic(tmp_path / "files")
    with FixturePrimary(profile="classic-11.8") as primary, pytest.raises(ConfigurationError, match="is there already"):
        primary.save_classic(tmp_path)
