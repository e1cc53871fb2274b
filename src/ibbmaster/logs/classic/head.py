"""The head of a traditional file: its format, and the GTID state before it."""

import contextlib
from typing import NamedTuple

from ibbmaster.errors import ClassicFormatError, EventError, GapError
from ibbmaster.gtid import GtidState
from ibbmaster.replication.event.control import decode_gtid_list
from ibbmaster.replication.event.format_description import (
    ChecksumAlgorithm,
    FormatDescription,
    decode_format_description,
)
from ibbmaster.replication.event.header import CHECKSUM_SIZE, FLAGS_OFFSET, HEADER
from ibbmaster.replication.event.types import EventFlag, EventType, type_name
from ibbmaster.storage.codec.printable import printable
from ibbmaster.versions import Difference, version_number
from .packing import PACKINGS
from .roles import MYSQL_GTID_TYPES
from .series import FORMAT_DESCRIPTION_SIZE_MAX, MAGIC, ClassicFile, ClassicSource
from .window import BlockWindow, EventWindow, Truncated

HEAD_BLOCK_SIZE = 1 << 14
GTID_LIST_SIZE_MAX = 1 << 27  # bytes: 8 million pairs

_IN_USE = int(EventFlag.IN_USE)
_IBB_MAGIC = b"\xfe\xfe\x0d\x01"
_MYSQL_ENCRYPTED_MAGIC = b"\xfdbin"


class FileHead(NamedTuple):
    server_version: str
    is_restart: bool
    has_checksums: bool
    format_description: bytes  # without the flag IN_USE, as a primary sends it
    state: GtidState | None = None  # of its GTID_LIST; None: the server had no GTIDs
    state_offset: int = 0

    @property
    def knows_gtids(self) -> bool:
        """Whether its server had GTIDs: then every event of a transaction is in a group."""
        return "MariaDB" in self.server_version and Difference.KNOWS_GTIDS.holds(version_number(self.server_version))


def head_of(file: ClassicFile) -> FileHead:
    """Raises as `read_head`."""
    with contextlib.closing(EventWindow(ClassicSource(file), block_size=HEAD_BLOCK_SIZE)) as window:
        return read_head(window)


def begun_head(file: ClassicFile) -> FileHead | None:
    """As `head_of`; None while the head is not whole, just after a server or a copier made the file."""
    with contextlib.closing(EventWindow(ClassicSource(file), block_size=HEAD_BLOCK_SIZE)) as window:
        try:
            return _read_head(window)
        except Truncated:
            return None


def is_begun(file: ClassicFile) -> bool:
    try:
        return begun_head(file) is not None
    except ClassicFormatError:
        return True


def without_unbegun(files: tuple[ClassicFile, ...]) -> tuple[ClassicFile, ...]:
    """Without a last file whose head is not whole: its server has just begun it, or died then."""
    return files[:-1] if len(files) > 1 and not is_begun(files[-1]) else files


def read_head(window: BlockWindow) -> FileHead:
    """Read magic, FORMAT_DESCRIPTION and GTID_LIST; stops before anything else. Raises ClassicFormatError: the file
    does not begin as a traditional binlog of MariaDB, or is encrypted."""
    try:
        return _read_head(window)
    except Truncated:
        raise window.error(0, "the file ends inside its head; leave it out if it is the last one") from None


def _read_head(window: BlockWindow) -> FileHead:
    window.require(len(MAGIC))
    magic = bytes(window.block[: len(MAGIC)])
    if magic != MAGIC:
        raise window.error(0, _explain_magic(magic))
    window.position = len(MAGIC)
    event, description = _read_format_description(window)
    has_checksums = description.checksum_algorithm is ChecksumAlgorithm.CRC32
    head = FileHead(description.server_version, description.created != 0, has_checksums, event)
    if not window.has_more():
        if head.knows_gtids:
            raise Truncated
        return head
    event_type, offset = window.peek_type(), window.offset
    if event_type == EventType.START_ENCRYPTION:
        raise window.error(
            offset,
            "this binlog is encrypted and its key is not known here: fetch the files from the running server, "
            "which decrypts them, with mariadb-binlog --read-from-remote-server --raw",
        )
    if event_type in MYSQL_GTID_TYPES:
        version = printable(head.server_version)
        raise window.error(offset, f"MySQL {version} wrote this binlog: only binlogs of MariaDB can be read")
    if event_type != EventType.GTID_LIST:
        return head
    _, event = window.read_event(GTID_LIST_SIZE_MAX)
    try:
        state = window.file.whole_state(GtidState(decode_gtid_list(event).gtids))
        return head._replace(state=state, state_offset=offset)
    except EventError as error:
        raise window.error(offset, str(error)) from None


def _read_format_description(window: BlockWindow) -> tuple[bytes, FormatDescription]:
    """As if the file were closed; sets `is_in_use` and `checksum_size` of the window."""
    offset = window.offset
    size = window.peek_size()
    if window.peek_type() != EventType.FORMAT_DESCRIPTION or size > FORMAT_DESCRIPTION_SIZE_MAX:
        problem = f"{type_name(window.peek_type())} event of {size} bytes where FORMAT_DESCRIPTION must stand"
        raise window.error(offset, problem)
    window.require(size)
    event = bytearray(window.view[window.position : window.position + size])
    if event[FLAGS_OFFSET] & EventFlag.RELAY_LOG:
        raise window.error(
            offset,
            "this is a relay log, which a replica keeps of its primary: name the binlog of the primary, or the "
            "replica's own (log_bin and log_slave_updates)",
        )
    window.is_in_use = bool(event[FLAGS_OFFSET] & _IN_USE)
    event[FLAGS_OFFSET] &= ~_IN_USE & 0xFF  # set and cleared without a new checksum
    try:
        description = decode_format_description(event)
    except EventError as error:
        raise window.error(offset, str(error)) from None
    window.check_log_pos(HEADER.unpack_from(event)[4], size)
    if description.checksum_algorithm is ChecksumAlgorithm.CRC32:
        window.checksum_size = CHECKSUM_SIZE
    window.position += size
    return bytes(event), description


def is_marked_in_use(source: ClassicSource) -> bool:
    flags = source.read(len(MAGIC) + FLAGS_OFFSET, 1)
    return bool(flags and flags[0] & _IN_USE)


def _explain_magic(magic: bytes) -> str:
    found = f"the file begins with {magic.hex(' ')}, expected {MAGIC.hex(' ')}"
    for packing in PACKINGS:
        if packing.magic and magic.startswith(packing.magic[: len(magic)]):
            return f"{found}: it is packed with {packing.name}, so its name must end in {packing.suffix}"
    if magic == _IBB_MAGIC:
        return f"{found}: this is an .ibb file already"
    if magic == _MYSQL_ENCRYPTED_MAGIC:
        return f"{found}: it is encrypted by MySQL; only binlogs of MariaDB can be read"
    return found


def continued(before: ClassicFile, state: GtidState, file: ClassicFile, head: FileHead) -> tuple[GtidState, str | None]:
    """Compare the GTID state at the head of a file with `state`, at the end of the one before. Returns the state before
    the file, and a notice for users. Raises GapError: files are missing, or are not of one binlog."""
    listed = head.state
    if listed is None or listed == state:
        return state, None
    dropped = set(state.domain_ids) - set(listed.domain_ids)
    expected = state.copy()
    for domain_id in dropped:
        expected.drop_domain(domain_id)
    if not dropped or head.is_restart or listed != expected:  # a server that starts forgets nothing
        raise GapError(
            file.name,
            head.state_offset,
            f"it begins at the GTID state {_text(listed)}, but {before.name} ends at {_text(state)}: "
            f"{missing_between(before, file)}",
            missing_between(before, file),
        )
    names = ", ".join(map(str, sorted(dropped)))
    return listed.copy(), f"{file.name}: the server forgot domain {names} here (DELETE_DOMAIN_ID)"


def is_gap(before: ClassicFile, file: ClassicFile) -> bool:
    if before.series_name != file.series_name:
        return False
    return before.number is not None and file.number is not None and file.number > before.number + 1


def missing_between(before: ClassicFile, file: ClassicFile) -> str:
    return f"files between {before.name} and {file.name} are missing, or they are not of one binlog"


def _text(state: GtidState) -> str:
    return f"'{state}'" if len(state) else "of an empty binlog"
