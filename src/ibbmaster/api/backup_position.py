"""The GTID position of a backup, by what its files say: those of mariadb-backup, or the comments of mariadb-dump."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.log.group_content import group_events
from ibbmaster.logs.log.interface import LogEngine, groups_from
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.types import EventType

OF_INNODB = "xtrabackup_binlog_pos_innodb"  # of the last commit that `--prepare` found in the data
FILES = [f"{program}_{what}_info" for what in ("binlog", "slave") for program in ("mariadb_backup", "xtrabackup")]
PART_SIZE = 1 << 16  # of a dump: the position is at its begin or, since 10.11, at its end
_GTIDS = re.compile(r"^(?:-- ?)?SET\s+GLOBAL\s+gtid_slave_pos\s*=\s*'([^']*)'|^[^\t\n]+\t\d+\t([-\d,]+)$", re.I | re.M)
_PLACE = re.compile(r"^(?:\./)?([^\s]+)\t(\d{1,18})\b")


class BinlogPlace(NamedTuple):
    """In a file of the server's binlog."""

    file: str
    offset: int


def backup_positions(path: Path, log: LogEngine) -> dict[str, GtidPosition]:
    """The position of a backup, by each file that says it. Raises ConfigurationError: there is none, it cannot be read,
    or the data of InnoDB are at another one."""
    gtids: dict[str, GtidPosition] = {}
    places: dict[str, BinlogPlace] = {}
    try:
        for name, text in _texts(path):
            for said in _GTIDS.finditer(text):
                position = GtidPosition.parse(said[1] or said[2])
                if gtids.setdefault(name, position) != position:
                    raise ConfigurationError(f"{path}: {name} says [{gtids[name]}] and [{position}]")
            if (found := _PLACE.search(text)) is not None:
                places[name] = BinlogPlace(found[1], int(found[2]))
    except (OSError, GtidError) as error:
        raise ConfigurationError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not gtids:
        raise ConfigurationError(
            f"{path}: says no GTID: expected {' or '.join(FILES)} of mariadb-backup, or a dump that was made with "
            "--master-data=2; --position says it, too"
        )
    of_data = places.pop(OF_INNODB, None)
    recorded = next(iter(places.values()), of_data)
    if of_data is not None and recorded is not None and not _are_same(log, gtids, of_data, recorded):
        raise ConfigurationError(
            f"{path}: the data are at {of_data.file} offset {of_data.offset} by InnoDB, and {recorded.file} offset "
            f"{recorded.offset} was recorded: if only DDL or other engines came between, or you know what the data "
            f"have, give --position; the recorded one is {next(iter(gtids.values()))}"
        )
    return gtids


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    found = [path / name for name in (*FILES, OF_INNODB) if (path / name).is_file()] if path.is_dir() else [path]
    for one in found:
        with one.open("rb") as file:
            parts = [file.read(PART_SIZE)]
            file.seek(max(PART_SIZE, one.stat().st_size - PART_SIZE))
            parts.append(file.read(PART_SIZE))
        yield one.name, "\n".join(part.decode("utf-8", "replace") for part in parts)


def _are_same(log: LogEngine, gtids: dict[str, GtidPosition], of_data: BinlogPlace, recorded: BinlogPlace) -> bool:
    """Whether data lack nothing of what was recorded, and have no more. Only a log with the files of that server says
    what came between: a transaction of an engine like InnoDB has an XID."""
    if of_data == recorded:
        return True
    names = {file.name.rpartition(".")[0] if file.is_packed else file.name: file.file_no for file in log.files()}
    if of_data > recorded or not {of_data.file, recorded.file} <= names.keys():
        return False
    begin, end = (LogPosition(names[place.file], place.offset) for place in (of_data, recorded))
    plan = log.start_of_file(begin.file_no)
    state = plan.state.copy()
    for group in groups_from(log, plan):
        if group.start >= end:
            break
        if group.start >= begin and any(event[TYPE_OFFSET] == EventType.XID for event in group_events(group)):
            return False
        if group.gtid is not None:
            state.log(group.gtid)
    return all(state.position() == position for position in gtids.values())
