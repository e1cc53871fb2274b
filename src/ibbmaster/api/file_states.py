"""The files of a log, each with its state: ready, written, closed, cut."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ibbmaster.errors import FormatError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.classic.stored_file import StoredFileState
from ibbmaster.logs.log.end_check import cut_error
from ibbmaster.logs.log.interface import LogFile
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.states import FULL_STATE_PAGE, read_state_record
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.disk.place import open_disk
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.page import PAGE_SIZE

READY = "ready, not begun"
WRITTEN = "the last one begun"
CLOSED = "closed"
ENDED_BY_FLUSH = "ended by FLUSH"
CUT = "cut"
DAMAGED = "damaged"
IN_USE = "not closed: in use, or its server crashed"
WITHOUT_END = "without ROTATE or STOP: a copy that was cut, or is under way"
PACKED = "closed, packed"

FileFacts = dict[str, object]


def paged_facts(path: Path, files: Sequence[LogFile]) -> list[FileFacts]:
    """Of each `.ibb` file of a directory, by field. Raises StoreError: the directory cannot be read."""
    with closing(open_disk(path)) as disk:
        pages = PageReader(disk, readahead_pages_max=1)
        found = [_of_pages(pages, disk, file) for file in files]
    begun = [facts for facts in found if facts["state"] != READY]
    if begun and begun[-1]["state"] == CLOSED:
        begun[-1]["state"] = WRITTEN
    return found


def traditional_facts(found: StoredFileState) -> FileFacts:
    file, head = found.file, found.head
    if file.packing is not None:
        state = PACKED
    elif found.is_marked_in_use:
        state = IN_USE
    else:
        state = WITHOUT_END if found.end is None else CLOSED
    return {
        "name": file.name,
        "bytes": file.size_bytes,
        "state": state,
        "begins_after": _shown(head.state),
        "server_version": head.server_version,
        "server_start": head.is_restart,
        "checksums": "CRC32" if head.has_checksums else "none",
    }


def _of_pages(pages: PageReader, disk: ReadDisk, file: LogFile) -> FileFacts:
    facts: FileFacts = {
        "name": file.name,
        "bytes": file.size,
        "state": READY,
        "begins_after": None,
        "checksums": "CRC-32C of each page",
    }
    try:
        header = pages.header(file.file_no)
        if header is None:
            return facts
        facts["state"] = CLOSED
        facts |= _header_facts(header)
        full = read_state_record(pages, file.file_no, FULL_STATE_PAGE)
        facts["begins_after"] = None if full is None else _shown(GtidState(full.gtids))
        error = cut_error(disk, file.file_no)
        if error is not None:
            facts |= {"state": CUT, "problem": error.problem}
        elif file.size < header.size_pages * PAGE_SIZE:
            facts["state"] = ENDED_BY_FLUSH
    except FormatError as error:
        facts |= {"state": DAMAGED, "problem": str(error)}
    return facts


def _header_facts(header: FileHeader) -> FileFacts:
    return {
        "format_version": f"{header.major_version}.{header.minor_version}",
        "bytes_at_creation": header.size_pages * PAGE_SIZE,
        "start_lsn": header.start_lsn,
        "state_interval_bytes": header.state_interval_pages * PAGE_SIZE,
        "oldest_file_of_parts": header.oob_file_no,
        "oldest_file_of_prepared": header.xa_file_no,
    }


def _shown(state: GtidState | None) -> str | None:
    return None if state is None else str(state)
