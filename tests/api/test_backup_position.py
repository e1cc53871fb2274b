"""What mariadb-backup and mariadb-dump of 10.11 and 11.8 say of a position, in their own words."""

import json
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api.backup_position import PART_SIZE, backup_positions
from ibbmaster.errors import ConfigurationError

CASES = json.loads(Path(__file__).with_suffix(".json").read_text())
LOG = Path(__file__).parents[2] / "fixtures" / "classic" / "10.11" / "domains"


def positions(path: Path) -> dict[str, str]:
    with ibbmaster.open(LOG) as log:
        return {name: str(position) for name, position in backup_positions(path, log.engine).items()}


def backup_of(files: dict[str, str], tmp_path: Path) -> Path:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "dump.sql" if "dump.sql" in files else tmp_path


@pytest.mark.parametrize("name", CASES["read"])
def test_each_file_says_its_position(name, tmp_path):
    files, expected = CASES["read"][name]
    assert positions(backup_of(files, tmp_path)) == expected


@pytest.mark.parametrize("name", CASES["refused"])
def test_what_says_nothing_or_two_things_is_refused(name, tmp_path):
    files, problem = CASES["refused"][name]
    with pytest.raises(ConfigurationError, match=problem):
        positions(backup_of(files, tmp_path))


def test_a_long_dump_is_read_at_its_ends_only(tmp_path):
    rows = "-- SET GLOBAL gtid_slave_pos='9-9-9';\n" + "INSERT INTO t VALUES (1);\n" * PART_SIZE
    text = "-- MariaDB dump\n" + "x" * PART_SIZE + rows + "-- SET GLOBAL gtid_slave_pos='0-1-3';\n"
    (tmp_path / "dump.sql").write_text(text)
    assert positions(tmp_path / "dump.sql") == {"dump.sql": "0-1-3"}


def between(log: ibbmaster.Log, first: str, last: str) -> tuple[str, str, str]:
    """Places in the only file of a log where a backup may have ended, in the words of mariadb-backup, and its GTIDs."""
    groups = {str(group.gtid): group for group in log}
    assert groups[first].start.file_no == groups[last].end.file_no
    name = log.engine.file_name(groups[first].start.file_no)
    state = ibbmaster.GtidState()
    for gtid in list(groups)[: list(groups).index(last) + 1]:
        state.log(ibbmaster.Gtid.parse(gtid))
    recorded, of_data = (f"{name}\t{groups[gtid].end.offset}" for gtid in (last, first))
    return f"{recorded}\t{state.position()}\n", f"./{of_data}\n", str(state.position())


@pytest.mark.parametrize(("last", "lacks"), [("0-1-3", False), ("0-1-8", True)])
def test_the_log_tells_whether_data_that_are_behind_lack_a_transaction(tmp_path, last, lacks):
    with ibbmaster.create(tmp_path / "log") as log:
        for number in range(1, 10):
            text = f"CREATE DATABASE d{number}" if number < 5 else ["INSERT INTO d1.t VALUES (1)"]
            log.append(f"0-1-{number}", text)
        recorded, of_data, position = between(log, "0-1-1", last)
        backup = backup_of(
            {"xtrabackup_binlog_info": recorded, "xtrabackup_binlog_pos_innodb": of_data}, tmp_path / "log"
        )
        if lacks:
            with pytest.raises(
                ConfigurationError, match=f"was recorded: .* give --position; the recorded one is {position}"
            ):
                backup_positions(backup, log.engine)
        else:
            assert {str(one) for one in backup_positions(backup, log.engine).values()} == {position}
