"""The names of a redo log's files, in a module that loads quickly."""

from ibbmaster.errors import MissingFileError
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.file_name import parse_file_name

SEGMENT_NAMES = ("ibbmaster-redo-0", "ibbmaster-redo-1")


def has_redo_log(disk: ReadDisk) -> bool:
    """Whether there are segments, by name: each reader of a range asks, and a directory may be long."""
    return any(_is_there(disk, name) for name in SEGMENT_NAMES)


def holds_log(disk: ReadDisk) -> bool:
    """Whether there is a log, in files or in a redo log alone."""
    return any(name in SEGMENT_NAMES or parse_file_name(name) is not None for name in disk.list())


def _is_there(disk: ReadDisk, name: str) -> bool:
    try:
        disk.size(name)
    except MissingFileError:
        return False
    return True
