"""Checks records other than commit records against their types."""

from ibbmaster.errors import ChunkError, EventError, RecordError
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, decode_event_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.ibb.chunk import FILLER, RecordType
from ibbmaster.storage.ibb.commit import decode_commit_header
from ibbmaster.storage.ibb.gtid_state import decode_gtid_state
from ibbmaster.storage.ibb.oob import OobNode, decode_oob_node, encode_oob_node
from ibbmaster.storage.ibb.xa import decode_xa_complete, decode_xa_prepare
from .event_groups import EVENT_SIZE_MAX, decode_first_event
from .out_of_band import check_stream

KNOWN_TYPES = frozenset(EventType)
LEAF = encode_oob_node(OobNode(node_index=0, left=None, right=None))


def check_other_record(record_type: int, head: bytes, ref: LogPosition, is_whole: bool) -> None:
    """Judge a record by its first `HEAD_SIZE` bytes, or by all of them: then it `is_whole`. Raises RecordError: it
    contradicts its type, or is a commit record with a wrong type."""
    if (what := _commit_in(head, ref)) is not None:
        raise RecordError(ref, f"a record of type {record_type} that holds {what}: its type was changed")
    match record_type:
        case RecordType.GTID_STATE:
            if ref.page_offset:
                raise RecordError(ref, "a GTID state record that does not begin a page")
            if is_whole:
                decode_gtid_state(head, ref)
        case RecordType.OOB_DATA:
            _, size = decode_oob_node(head, ref)
            if is_whole and size == len(head):
                raise RecordError(ref, "an out-of-band record without data")
        case RecordType.XA_PREPARE:
            decode_xa_prepare(head, ref)
        case RecordType.XA_COMPLETE:
            decode_xa_complete(head, ref)
        case RecordType.DUMMY:
            if head.strip(bytes((FILLER,))):
                raise RecordError(ref, "a dummy record with other bytes than ff")


def check_rest(data: bytes, ref: LogPosition) -> None:
    """Judge a chunk of an unread record. Raises ChunkError: a commit record begins here."""
    if (what := _commit_in(data, ref)) is not None:
        raise ChunkError(ref, f"a record continues with {what}: that it begins here was changed")


def _commit_in(head: bytes, ref: LogPosition) -> str | None:
    """What these bytes begin: one changed byte of the type of a commit record makes readers skip it."""
    try:
        header, size = decode_commit_header(head, ref)
        for stream in header.streams:
            check_stream(stream, ref)
        gtid, _ = decode_first_event(head, size, ref)
    except RecordError:
        return None
    if _is_leaf_with_events(head):
        return None
    return "a commit record" if gtid is None else f"the commit record of group {gtid}"


def _is_leaf_with_events(head: bytes) -> bool:
    if head[: len(LEAF)] != LEAF or len(head) < len(LEAF) + EVENT_HEADER_SIZE:
        return False
    try:
        header = decode_event_header(head, len(LEAF))
    except EventError:
        return False
    return header.event_type in KNOWN_TYPES and header.size <= EVENT_SIZE_MAX
