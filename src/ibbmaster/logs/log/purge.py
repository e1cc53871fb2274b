"""Chooses the files to purge. Rules: protocol/store/files.md."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ibbmaster.errors import StoreError
from ibbmaster.storage.ibb.file_name import format_file_name


class PurgeRequest(NamedTuple):
    """A file may go if any of these says so. `to_file_no`: it is older than this file. `before`: it was last written
    before this moment, in seconds since 1970. `total_bytes`: all files together are larger."""

    to_file_no: int | None = None
    before: float | None = None
    total_bytes: int | None = None


class PurgeResult(NamedTuple):
    """`file_nos` were removed; `kept_file` is a requested one that is still needed, if any."""

    file_nos: tuple[int, ...]
    kept_file: str | None
    wanted_before: int = 0  # files with lower numbers were requested

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(format_file_name, self.file_nos))

    @property
    def kept(self) -> str | None:
        """`kept_file` and why."""
        name = self.kept_file
        return name and f"{name} is in use: it is written, or a replica, a transaction or a newer file needs it"


def choose_files(
    files: Sequence[tuple[int, int, float]], request: PurgeRequest, *, needed: int, oob_file_no: Callable[[int], int]
) -> PurgeResult:
    """The requested files, from the oldest on, that nothing needs. `files` are (number, bytes, last written) from the
    oldest on, `needed` the oldest that a reader needs, `oob_file_no` returns the oldest file that the groups of a file
    may need; MariaDB checks that only for files being read. Raises StoreError: the request names a file that never was.
    Source: MariaDB 12.3, innodb_binlog.cc, innodb_binlog_purge()."""
    oldest, newest = files[0][0], files[-1][0]
    if request.to_file_no is not None and not 0 <= request.to_file_no <= newest:
        raise StoreError(f"unknown target binlog: {format_file_name(request.to_file_no)}")
    total = sum(size for _, size, _ in files)
    wanted = oldest
    for file_no, size, written_at in files:
        if not (
            (request.to_file_no is not None and file_no < request.to_file_no)
            or (request.before is not None and written_at < request.before)
            or (request.total_bytes is not None and total > request.total_bytes)
        ):
            break
        wanted = file_no + 1
        total -= size
    first, checked = min(wanted, needed), newest + 1
    while first > oldest and first < checked:  # what is kept may need older and older files
        first, checked = min(first, *(oob_file_no(file_no) for file_no in range(first, checked))), first
    kept = format_file_name(max(first, oldest)) if first < wanted else None
    return PurgeResult(file_nos=tuple(range(oldest, max(first, oldest))), kept_file=kept, wanted_before=wanted)
