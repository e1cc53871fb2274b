"""What is said of a log: beside what its capture says, what other commands answer, and where it is damaged or empty."""

import json
import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.info.log_info import log_info
from ibbmaster.errors import ClassicFormatError, FormatError, StoreError
from ibbmaster.gtid import GtidState

FIXTURES = Path(__file__).parents[3] / "fixtures"
CLASSIC = FIXTURES / "classic"
AROUND_GROUPS = {"FORMAT_DESCRIPTION", "GTID_LIST", "BINLOG_CHECKPOINT", "ROTATE", "STOP"}


def info(path, file_no=None, **options):
    with ibbmaster.open(path) as log:
        return log_info(log.path, log.engine, log.stored, file_no, **options)


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/ddl-trx-xa", "11.8/statement-compressed-none"])
def test_groups_events_and_files_are_those_of_the_capture(name):
    expected = json.loads((CLASSIC / name / "expected.json").read_text())
    facts = info(CLASSIC / name)

    assert (facts["format"], facts["groups"]) == ("traditional", expected["event_groups"])
    assert {one["type"]: one["events"] for one in facts["event_types"]} == {
        name: count for name, count in expected["events"].items() if name not in AROUND_GROUPS
    }
    assert [(one["name"], one["bytes"]) for one in facts["files"]] == [
        (file["name"], file["bytes"]) for file in expected["files"]
    ]
    assert facts["gtid_position"] == expected["gtid_binlog_pos_after"]
    assert {one["version"] for one in facts["servers"]} == {expected["server"]}
    assert facts["checksums"] == expected["options"]["binlog-checksum"].replace("NONE", "none")


def test_what_is_imported_has_the_same_groups(imported):
    facts, source = info(imported("11.8/domains")), info(CLASSIC / "11.8/domains")
    of_groups = ("groups", "events", "bytes", "domains", "tables", "first", "last", "time_line", "event_types")
    assert {key: facts[key] for key in of_groups} == {key: source[key] for key in of_groups}
    assert GtidState.parse(facts["gtid_state"]) == GtidState.parse(source["gtid_state"])
    assert (facts["format"], facts["checksums"], facts["redo_log"]) == ("ibb", "CRC-32C of each page", None)


def test_one_file_has_the_groups_that_end_in_it(imported):
    path = imported("11.8/types-full-crc32")
    numbers = range(len(list(path.glob("*.ibb"))))
    parts = [info(path, file_no) for file_no in numbers]
    assert len(parts) > 2
    assert sum(part["groups"] for part in parts) == info(path)["groups"]
    assert [part["files"][0]["name"] for part in parts] == [f"binlog-{number:06}.ibb" for number in numbers]


def test_starts_of_servers_are_counted_in_both_formats():
    assert info(FIXTURES / "ibb-mariadb/two-restarts")["servers"] == []  # its engine had no server around it
    assert [one["starts"] for one in info(CLASSIC / "10.11/domains")["servers"]] == [3]


def test_groups_that_are_only_in_the_redo_log_are_counted(tmp_path):
    log = ibbmaster.create(tmp_path / "log", max_file_bytes="128K", has_background=False)
    log.append("0-1-1", ["INSERT INTO d.t VALUES (1)"])
    shutil.copytree(tmp_path / "log", tmp_path / "killed")
    log.close()
    facts = info(tmp_path / "killed")

    assert (facts["groups"], facts["gtid_position"]) == (1, "0-1-1")
    assert (facts["redo_log"]["groups"], facts["redo_log"]["applies"]) == (1, True)
    assert "`ibbmaster recover DIR` brings them there" in facts["redo_log"]["text"]


def test_bytes_that_are_read_are_heard_of():
    heard = []
    facts = info(CLASSIC / "11.8/large-commit", on_bytes=heard.append)
    assert sum(heard) == facts["bytes"]


def test_an_empty_directory_and_damage_are_errors(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no binlog files"):
        info(tmp_path / "empty")
    shutil.copytree(FIXTURES / "ibb/domains", tmp_path / "log")
    data = bytearray((tmp_path / "log/binlog-000000.ibb").read_bytes())
    data[2 * 16384 + 50] ^= 1
    (tmp_path / "log/binlog-000000.ibb").write_bytes(data)
    with pytest.raises(FormatError, match=r"^binlog-000000\.ibb page 2 "):
        info(tmp_path / "log")
    shutil.copytree(CLASSIC / "11.8/domains", tmp_path / "classic")
    data = bytearray((tmp_path / "classic/binlog.000002").read_bytes())
    data[2000] ^= 1
    (tmp_path / "classic/binlog.000002").write_bytes(data)
    with pytest.raises(ClassicFormatError, match=r"^binlog\.000002 offset "):
        info(tmp_path / "classic")
