"""Whether a worker sees the log that the driver has planned with: it may run on another machine."""

import contextlib
import socket
from contextlib import closing

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.disk.place import open_disk, place
from ibbmaster.errors import StoreError
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.log.log_range import LogRange

REMEDY = "workers read the log themselves, so each must see it under the same path"


def expect_log(options: ReadOptions, log_range: LogRange, *, is_strict: bool) -> None:
    """In a worker: see that a log is there, and the file of a range unless files may be missing. Raises StoreError: it
    is not; it names this machine."""
    path = options.path
    if options.is_classic:
        if not place(path).exists():
            raise _unreachable(path, "no such file or directory")
    elif is_strict:
        name = format_file_name(log_range.file_no)
        with closing(open_disk(path)) as disk, contextlib.suppress(StoreError):
            disk.size(name)
            return  # a directory may have ten thousand files: it is listed only to say which are missing
        if log_range.file_no not in _numbers(path):
            raise _unreachable(path, f"{name} is not there, which the driver has seen")
    elif not _numbers(path):
        raise _unreachable(path, "no binlog files are there, which the driver has seen")


def _numbers(path: str) -> set[int]:
    try:
        with closing(open_disk(path)) as disk:
            return {number for name in disk.list() if (number := parse_file_name(name)) is not None}
    except StoreError as error:
        raise _unreachable(path, str(error).removeprefix(f"{path}: ").lower()) from None


def _unreachable(path: str, problem: str) -> StoreError:
    return StoreError(f"{path}: not reachable from worker {socket.gethostname()}: {problem}; {REMEDY}")
