"""`ibbmaster check`: a named line for each thing that a log, or a running primary, is needed for."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import ibbmaster
from ibbmaster.api.log import Log
from ibbmaster.errors import IbbMasterError, SourceError, StoreError
from ibbmaster.logs.capture.client import (
    DENIED,
    PrimaryAddress,
    code_of,
    connected,
    oldest_state,
    semi_sync_of,
    shown_value,
    value_of,
)
from ibbmaster.logs.capture.following import logged_state
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.storage.disk.local import RealDisk
from .arguments import report
from .credentials import running_primary

FREE_MIN = 0.05  # of a disk


class Finding(NamedTuple):
    name: str
    is_ok: bool
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {'OK' if self.is_ok else 'FAILED'}: {self.text}"


def run(args: argparse.Namespace) -> int:
    primary = running_primary(args.what, args)
    findings = list(_of_log(args.what) if primary is None else _of_primary(primary))
    is_ok = all(finding.is_ok for finding in findings)
    report(args, {"is_ok": is_ok, "checks": [finding._asdict() for finding in findings]}, *map(str, findings))
    return 0 if is_ok else 1


def _tried(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    except (IbbMasterError, OSError) as error:
        return Finding(name, False, str(error))


def _of_log(path: str) -> Iterator[Finding]:
    try:
        log = ibbmaster.open(path)
    except (IbbMasterError, OSError) as error:
        yield Finding("readable", False, str(error))
        return
    with log:
        yield _tried("readable", lambda: _files(log))
        yield _tried("durable end", lambda: _end(log))
        yield _tried("last file", lambda: _read_last(log))
    if Path(path).is_dir():
        yield _tried("writer", lambda: _writer(Path(path)))
        yield _tried("free space", lambda: _free(path))


def _files(log: Log) -> str:
    files = log.engine.files()
    if not log.files:
        raise StoreError("no binlog files")
    return f"{len(files)} files, {sum(file.size for file in files)} bytes"


def _end(log: Log) -> str:
    end = log.engine.end()
    return f"{log.engine.file_name(end.file_no)} offset {end.offset}, GTID position {log.position or 'empty'}"


def _read_last(log: Log) -> str:
    """Every byte of it has its checksum."""
    plan, count = log.engine.start_of_file(log.engine.end().file_no), 0
    for count, group in enumerate(groups_from(log.engine, plan), 1):  # noqa: B007 - the last one counts
        for _ in group.body:
            pass
    return f"{count} transactions are whole"


def _writer(directory: Path) -> str:
    with closing(RealDisk(directory)) as disk:
        if not disk.is_locked():
            return "nobody writes it"
    inode = f":{directory.stat().st_ino}"
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return f"process {next((lock[4] for lock in locks if lock[5].endswith(inode)), 'elsewhere')} writes it"


def _free(path: str) -> str:
    usage = shutil.disk_usage(path)
    text = f"{usage.free >> 20} MiB of {usage.total >> 20} MiB"
    if usage.free < FREE_MIN * usage.total:
        raise StoreError(f"{text}: expected {FREE_MIN:.0%}")
    return text


def _of_primary(primary: PrimaryAddress) -> Iterator[Finding]:
    try:
        with connected(primary) as connection:
            yield Finding("reachable", True, str(primary))
            yield Finding("login", True, primary.user)
            cipher = shown_value(connection, "SHOW STATUS LIKE 'Ssl_cipher'") or "none"
            yield Finding("TLS", cipher != "none" or not primary.uses_tls, cipher)
            yield _tried("GTIDs", lambda: str(logged_state(primary, connection).position()) or "nothing is logged")
            binlog_format = value_of(connection, "binlog_format")
            text = "" if binlog_format == "ROW" else ": rows of statements are not in the log"
            yield Finding("binlog format", binlog_format == "ROW", binlog_format + text)
            yield Finding("semi-synchronous", True, semi_sync_of(connection) or "unavailable")
        yield _tried("purged", lambda: str(oldest_state(primary)) or "nothing")
    except SourceError as error:
        yield Finding("login" if code_of(error) in DENIED else "reachable", False, str(error))
