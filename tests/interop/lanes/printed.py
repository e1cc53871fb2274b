"""What `mariadb-binlog` prints, event by event, without what differs between a file and a stream.

Two primaries that serve the same events print the same list: positions, checksums, and the
events that describe a file rather than a change (its header, its end) are left out. So are
settings of the session that repeat what is set already, as the tool does after each file header.
"""

import base64
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEADER_LINE = re.compile(
    r"#(?P<time>\d{6} [\d ]\d:\d\d:\d\d) server id (?P<server_id>\d+)  end_log_pos \d+"
    r"(?P<crc> CRC32 0x[0-9a-f]{8})? ?(?:\t(?P<text>.*))?$"
)
ABOUT_FILES = ("Start: binlog", "Rotate to", "Gtid list", "Binlog checkpoint", "Stop")
NOISE = re.compile(  # lines that tell where something stood, or that repeat the state of the session
    r"# at \d+$|DELIMITER |# End of log file|ROLLBACK /\* added by |/\*!50003 SET COMPLETION_TYPE"
    r"|SET @@session.pseudo_thread_id="  # printed once a file; every title has the thread anyway
    r"|/\*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE|/\*!40019 SET|/\*!50003 SET @OLD_COMPLETION_TYPE"
    r"|/\*!100001 SET @@SESSION\.(SERVER_ID|GTID_DOMAIN_ID)=@@GLOBAL|$"
)
SETTING = re.compile(r"(@@session\.\w+)=([^,/]*)|(^use |^/\*!\\C )(.*)")
EVENT_HEADER = struct.Struct("<IBIIIH")  # timestamp, type, server id, size, end position, flags


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedEvent:
    title: str  # time, server id and the tool's word for it
    lines: tuple[str, ...]  # the statement, or the row events as bytes in hexadecimal


def parse_printed(output: str, *, temporary_directory: str = "") -> list[PrintedEvent]:
    events: list[PrintedEvent] = []
    title = ""
    lines: list[str] = []
    is_kept = False
    has_checksum = False
    settings: dict[str, str] = {}

    def finish() -> None:
        if is_kept:
            events.append(PrintedEvent(title=title, lines=tuple(readable(lines, has_checksum=has_checksum))))

    for line in output.replace(temporary_directory or "\0", "TMPDIR").splitlines():
        match = HEADER_LINE.match(line)
        if match is None:
            if not NOISE.match(line) and not repeats(line, settings):
                lines.append(line)
            continue
        finish()
        text = match["text"] or ""  # some have their word for it on the next line
        title = f"{match['time']} server {match['server_id']} {text.strip()}"
        is_kept = not text.startswith(ABOUT_FILES)
        has_checksum = match["crc"] is not None
        lines = []
    finish()
    return events


def repeats(line: str, settings: dict[str, str]) -> bool:
    """Whether a line sets nothing but what `settings` has already; they are updated."""
    if not line.startswith(("SET @@session.", "/*M!", "use ", "/*!\\C ")):
        return False
    found = {variable or statement: value or rest for variable, value, statement, rest in SETTING.findall(line)}
    is_known = bool(found) and found.items() <= settings.items()
    settings |= found
    return is_known


def readable(lines: list[str], *, has_checksum: bool) -> Iterator[str]:
    rest = iter(lines)
    for line in rest:
        yield line
        if line.endswith("BINLOG '"):  # two-phase ALTER has it in a comment
            block = []
            for coded in rest:
                if coded.startswith("'"):
                    break
                block.append(coded)
            yield from decode_block(block, has_checksum=has_checksum)


def decode_block(lines: list[str], *, has_checksum: bool) -> Iterator[str]:
    """The events of a BINLOG statement: type, flags and body, without position and checksum."""
    event = b""
    for line in lines:
        event += base64.b64decode(line)
        if len(event) >= EVENT_HEADER.size and len(event) == EVENT_HEADER.unpack_from(event)[3]:
            timestamp, event_type, server_id, _, _, flags = EVENT_HEADER.unpack_from(event)
            body = event[EVENT_HEADER.size : -4 if has_checksum else None]
            yield f"event type {event_type} of {timestamp} from {server_id} flags {flags:#x} {body.hex()}"
            event = b""
    if event:
        yield f"incomplete event {event.hex()}"
