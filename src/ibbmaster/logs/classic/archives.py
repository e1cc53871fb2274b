"""Archives that other programs make of the traditional files of servers, in the order in which these logged.

- wal-g: `binlog_005/NAME.EXT`, and the GTIDs that it has archived in `binlog_sentinel_005.json`.
- mariadb-operator: `server-ID/NAME.EXT` with the files of each server that was the primary, and `index.yaml` with their
  GTIDs. Each server numbers its own files, and most log only their own transactions.

Where servers take turns, or numbers begin anew, the next file is the one that has the next sequence number in each
domain. The files decide; an index can only contradict them.

Source: wal-g, internal/databases/mysql/binlog_push_handler.go, mysql_binlog.go; mariadb-operator, pkg/binlog."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import GtidError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.printable import printable
from ibbmaster.storage.disk.place import ObjectPath
from .binlog import ClassicGroups, ClassicReader
from .groups import ClassicFileReader
from .head import head_of, is_gap
from .packing import archive_directories
from .series import FIRST_EVENT_OFFSET, INDEX_SIZE_MAX, ClassicFile, classic_file, find_series, starts_like_a_binlog

WAL_G, SENTINEL, INDEX = "binlog_005", "binlog_sentinel_005.json", "index.yaml"
GTID_FIELDS = ("previousGtids", "firstGtid", "lastGtid")

_LINE = re.compile(r" *(?P<begins>- )?(?P<key>[\w-]+):(?: +(?P<value>.*))?| *- (?P<item>.+)", re.ASCII)


def archived_paths(path: Path) -> list[Path]:
    """All in the directories of an archive; nothing if it is none."""
    directories = archive_directories([one.name for one in path.iterdir()]) if path.is_dir() else []
    return [one for name in directories for one in sorted((path / name).iterdir())]


def find_files(paths: Sequence[Path]) -> tuple[ClassicFile, ...]:
    """As `find_series`, also of one archive. Raises ClassicFormatError: a file of an archive is damaged; StoreError:
    one is encrypted or something else, an index contradicts the files, or their order is unclear."""
    found = archived_paths(paths[0]) if len(paths) == 1 else []
    if not found:
        return find_series(paths)
    for directory, beside in itertools.groupby(found, attrgetter("parent")):
        if isinstance(directory, ObjectPath):
            directory.expect_heads([path.name for path in beside])
    files = sorted(map(_checked, found), key=lambda file: (file.series_name, file.number or 0))
    steps = [
        (file.number or 0) - (before.number or 0) if before.series_name == file.series_name else None
        for before, file in itertools.pairwise(files)
    ]
    if 0 in steps:
        raise StoreError(f"{files[steps.index(0)].path}: another file beside it has the same number")
    if any(file.path.parent.name != WAL_G for file in files):
        runs = list(_runs(files))
        _check_index(paths[0] / INDEX, runs)
        return _in_order(runs)
    ordered = find_series(found) if set(steps) <= {1} else _in_order(list(_runs(files)))
    _check_sentinel(paths[0] / SENTINEL, ordered[-1])
    return ordered


def _checked(path: Path) -> ClassicFile:
    file = classic_file(path)
    if file.number is None:
        raise StoreError(f"{path}: expected a name as binlog.000001, and perhaps a packing that can be read")
    if not starts_like_a_binlog(path):
        raise StoreError(
            f"{path} does not begin as its name says: it is damaged, or encrypted by the program that archived it, "
            "which decrypts it (`wal-g binlog-fetch`)"
        )
    return file if path.parent.name == WAL_G else replace(file, name=f"{path.parent.name}/{file.name}")


class _Run(NamedTuple):
    """Successive files of one server: the first GTID of each domain in them, and the states before and after them."""

    files: list[ClassicFile]
    before: GtidState
    firsts: dict[int, Gtid]
    after: GtidState

    def __str__(self) -> str:
        begins = ",".join(map(str, self.firsts.values())) or "no transaction"
        return f"{self.files[0].name} lists [{self.before}] and begins with {begins}"

    def follows(self, state: GtidState) -> bool:
        """Whether it has the next transaction of each domain that is known."""
        highest = ((first, state.highest_seq_no(domain)) for domain, first in self.firsts.items())
        return all(seq_no is None or first.seq_no == seq_no + 1 for first, seq_no in highest)

    def is_next(self, state: GtidState) -> bool:
        """As `follows`, of a server that may be another one."""
        is_linked = not self.firsts.keys().isdisjoint(state.domain_ids)
        return is_linked and self.follows(state) and _has_all(state, self.before)

    def begins_after(self, other: _Run) -> bool:
        return any(
            domain in other.firsts and other.firsts[domain].seq_no < first.seq_no
            for domain, first in self.firsts.items()
        )

    def has_all_of(self, other: _Run) -> bool:
        has_domains = other.firsts.keys() <= self.firsts.keys()
        return has_domains and not self.begins_after(other) and _has_all(self.after, other.after)


def _has_all(state: GtidState, other: GtidState) -> bool:
    return all((state.seq_no(one.domain_id, one.server_id) or 0) >= one.seq_no for one in other)


def _runs(files: Sequence[ClassicFile]) -> Iterator[_Run]:
    """One of each file; the next one of its server lists the state after it."""
    listed = [_listed(file) for file in files]
    for number, (file, before) in enumerate(zip(files, listed, strict=True)):
        later = files[number + 1] if number + 1 < len(files) else None
        is_beside = later is not None and later.series_name == file.series_name and not is_gap(file, later)
        after = listed[number + 1] if is_beside else _end_of(file, before)
        logged = {one.domain_id for one in after if before.seq_no(one.domain_id, one.server_id) != one.seq_no}
        yield _Run([file], before, _firsts(file, len(logged)), after)


def _listed(file: ClassicFile) -> GtidState:
    state = head_of(file).state
    if state is None:
        raise StoreError(f"{file.path}: its server had no GTIDs, so its place among the other files is unknown")
    return state


def _end_of(file: ClassicFile, before: GtidState) -> GtidState:
    from .framing import read_all

    reader = ClassicReader((file,), before)
    with contextlib.closing(ClassicGroups(reader, LogPosition(file.index, FIRST_EVENT_OFFSET))) as groups:
        read_all(groups)
        return groups.state


def _firsts(file: ClassicFile, domain_count: int) -> dict[int, Gtid]:
    firsts: dict[int, Gtid] = {}
    with contextlib.closing(ClassicFileReader(file)) as reader:
        groups = reader.groups()
        while len(firsts) < domain_count and (group := next(groups, None)) is not None:
            assert group.gtid is not None
            firsts.setdefault(group.gtid.domain_id, group.gtid)
    return firsts


def _goes_on(run: _Run, part: _Run) -> bool:
    """Whether the next file of a server does: one whose files are all here may leave out numbers."""
    last, file = run.files[-1], part.files[0]
    is_beside = last.series_name == file.series_name and not is_gap(last, file)
    return is_beside and (file.path.parent.name == WAL_G or not run.firsts or part.follows(run.after))


def _in_order(parts: Sequence[_Run]) -> tuple[ClassicFile, ...]:
    left: list[_Run] = []
    for part in parts:
        last = left[-1] if left else None
        if last is not None and _goes_on(last, part):
            left[-1] = _Run(last.files + part.files, last.before, part.firsts | last.firsts, part.after)
        else:
            left.append(part)
    empty = [run for run in left if not run.firsts]
    left = [run for run in left if run.firsts] or empty[:1]
    for run in tuple(left):  # a replica that logs what it replicates has all of its primary
        if any(other is not run and other.has_all_of(run) for other in left):
            left.remove(run)
    ordered: list[ClassicFile] = []
    state = GtidState()
    while left:
        fitting = [
            run
            for run in left
            if (run.is_next(state) if ordered else not any(run.begins_after(other) for other in left))
        ]
        if len(fitting) != 1:
            raise _unclear(ordered, state, fitting or left)
        left.remove(fitting[0])
        ordered += [replace(file, index=at, earlier=state) for at, file in enumerate(fitting[0].files, len(ordered))]
        state = ordered[-1].whole_state(fitting[0].after)
    if unknown := [run for run in empty if not _has_all(state, run.before)]:
        raise _unclear(ordered, state, unknown)
    return tuple(ordered)


def _unclear(ordered: Sequence[ClassicFile], state: GtidState, runs: Sequence[_Run]) -> StoreError:
    where = f"{ordered[-1].name} ends at [{state}]" if ordered else "an archive begins"
    return StoreError(
        f"{where}, and {' and '.join(map(str, runs[:2]))}: files between them are missing, or the servers have gone "
        f"apart; {runs[0].files[0].path.parent} alone can be read"
    )


def _check_sentinel(path: Path, last: ClassicFile) -> None:
    """Raises StoreError: more was archived than the files have."""
    if not path.is_file():
        return
    try:
        archived = GtidState.parse(json.loads(_text_of(path)).get("GtidArchived") or "")
    except (ValueError, AttributeError, TypeError, GtidError) as error:
        raise StoreError(f"{path} cannot be read: {printable(str(error))}") from None
    state = _listed(last)
    if not _has_all(state, archived) and not _has_all(state := _end_of(last, state), archived):
        raise StoreError(f"{path}: [{archived}] is archived, but {last.name} ends at [{state}]: a file is missing")


def _text_of(path: Path) -> str:
    if path.stat().st_size > INDEX_SIZE_MAX:
        raise StoreError(f"{path} is too large for an index")
    return path.read_bytes().decode("utf-8", "replace")


def _check_index(path: Path, runs: Sequence[_Run]) -> None:
    """Raises StoreError: a file is missing, or has other GTIDs, of any server under `log_slave_updates`."""
    known = {run.files[0].path.parent / run.files[0].own_name: run for run in runs}
    for server, entry in _entries(path) if path.is_file() else ():
        name = printable(f"{server}/{entry.get('binlogFilename')}")
        run = known.get(path.parent / server / entry.get("binlogFilename", ""))
        if run is None:
            raise StoreError(f"{path} names {name}, which is not here")
        try:
            listed, first, last = (GtidState.parse(entry.get(key, "")) for key in GTID_FIELDS)
        except GtidError as error:
            raise StoreError(f"{path}: {name}: {printable(str(error))}") from None
        firsts = {domain: one.seq_no for domain, one in run.firsts.items()}
        begins = all(firsts.get(one.domain_id) == one.seq_no for one in first) and bool(first) == bool(firsts)
        ends = all(run.after.highest_seq_no(one.domain_id) == one.seq_no for one in last)
        if set(listed) != set(run.before) or not begins or not ends:
            raise StoreError(
                f"{path} says of {name} [{listed}], {first} to {last}, but {run} and ends at [{run.after}]"
            )


def _entries(path: Path) -> list[tuple[str, dict[str, str]]]:
    """The server and the fields of each file. Raises StoreError: a line is not as the operator writes it."""
    server, key = "", ""
    fields: dict[str, str] = {}
    found: list[tuple[str, dict[str, str]]] = []
    for number, line in enumerate(_text_of(path).splitlines(), 1):
        text = line.partition(" #")[0].rstrip()
        match = _LINE.fullmatch(text)
        if match is None:
            if text:
                raise StoreError(f"{path} line {number}: expected a field of a file, found {printable(text[:80])!r}")
            continue
        key = match["key"] or key
        if match["begins"]:
            fields = {}
            found.append((server, fields))
        if match["item"]:
            fields[key] = f"{fields.get(key, '')},{match['item']}".lstrip(",")
        elif key.startswith("server-"):
            server = key
        else:
            fields[key] = "" if match["value"] in (None, "null", "[]") else match["value"].strip('"')
    return found
