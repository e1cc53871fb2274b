"""Arrow arrays from the arrays that kernels fill."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import TEXT_SIZES, EventColumn, GroupColumn, TextOp
from ibbmaster.position import NOWHERE
from ibbmaster.replication.event.types import type_name
from .event_batch import EventBatch

if TYPE_CHECKING:
    import pyarrow as pa

SECOND_US = 1_000_000
GTID_TEXT_MAX = 10 + 10 + 20 + 2  # bytes
WIDE_ROW = 128  # bytes: where rows are longer, a column's exact sizes are worth a look
TEXT_BYTES_MAX = 2**31 - 1  # of all strings of one array


def group_array(name: str, batch: EventBatch, rows: Any, kernels: Kernels) -> pa.Array:
    """A column of `shape.GROUP_FIELDS`; `rows` has the group of each row."""
    import pyarrow as pa

    groups = batch.groups
    match name:
        case "_gtid":
            return gtid_array(groups, rows, kernels)
        case "_domain":
            return pa.array(groups[rows, GroupColumn.DOMAIN])
        case "_server_id":
            return pa.array(groups[rows, GroupColumn.SERVER])
        case "_seq":
            return decimal_array(groups[rows, GroupColumn.SEQ_NO], None, None, pa.decimal128(20, 0))
        case "_commit_ts":
            return timestamp_array(groups[rows, GroupColumn.TIMESTAMP] * SECOND_US)
        case "_file_no":
            return place_array(groups, rows, GroupColumn.FILE_NO)
        case _:
            assert name == "_offset", name
            return place_array(groups, rows, GroupColumn.FILE_OFFSET)


def place_array(groups: Any, rows: Any, column: GroupColumn) -> pa.Array:
    import pyarrow as pa

    is_nowhere = groups[rows, GroupColumn.FILE_NO] == NOWHERE.file_no
    return pa.array(groups[rows, column], mask=is_nowhere if is_nowhere.any() else None)


def gtid_array(groups: Any, rows: Any, kernels: Kernels) -> pa.Array:
    import pyarrow as pa

    count = len(rows)
    offsets = np.empty(count + 1, dtype=np.int32)
    text = np.empty(count * GTID_TEXT_MAX, dtype=np.uint8)
    kernels.gtid_texts(groups, rows, offsets, text)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def event_array(name: str, batch: EventBatch, headers: dict[str, Any], kernels: Kernels) -> pa.Array:
    """A column of the events themselves; `headers` comes from `read_headers`."""
    import pyarrow as pa

    events = batch.events
    match name:
        case "event_no":
            return pa.array(events[:, EventColumn.NUMBER].astype(np.int32))
        case "event_ts":
            return timestamp_array(headers["timestamps"])
        case "bytes":
            return pa.array(events[:, EventColumn.SIZE].copy())
        case "data":
            starts, sizes = (np.ascontiguousarray(events[:, one]) for one in (EventColumn.START, EventColumn.SIZE))
            valid = np.ones(len(starts), dtype=np.uint8)
            return string_array(pa.binary(), batch.data, starts, sizes, valid, kernels)
        case "type_name":
            known, places = np.unique(headers["types"], return_inverse=True)
            return picked_texts(places, [type_name(int(event_type)) for event_type in known])
        case _:
            return pa.array(headers[{"event_type": "types", "server_id": "server_ids", "flags": "flags"}[name]])


def picked_texts(places: Any, texts: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    numbers = pa.array(places.astype(np.int32))
    return pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.string())).cast(pa.string())


def read_headers(batch: EventBatch, kernels: Kernels) -> dict[str, Any]:
    """Type, microseconds, server id and flags of each event."""
    count = len(batch.events)
    headers: dict[str, Any] = {
        "types": np.empty(count, dtype=np.int32),
        "timestamps": np.empty(count, dtype=np.int64),
        "server_ids": np.empty(count, dtype=np.int64),
        "flags": np.empty(count, dtype=np.int32),
    }
    kernels.header_columns(batch.data, batch.events, *headers.values())
    return headers


def timestamp_array(microseconds: Any, valid: Any = None, *, zone: str | None = "UTC") -> pa.Array:
    """`valid` has a byte for each; None means all."""
    import pyarrow as pa

    kind = pa.timestamp("us", tz=zone)
    buffers = [bitmap(valid), pa.py_buffer(np.ascontiguousarray(microseconds))]
    return pa.Array.from_buffers(kind, len(microseconds), buffers)


def fixed_array(kind: pa.DataType, numbers: Any, valid: Any) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(kind, len(numbers), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(numbers))])


def decimal_array(low: Any, high: Any, valid: Any, kind: pa.DataType) -> pa.Array:
    """Decimals of the halves of 128-bit numbers; without `high` they have 64 bits and no sign."""
    import pyarrow as pa

    both = np.empty((len(low), 2), dtype=np.int64)
    both[:, 0] = low
    both[:, 1] = 0 if high is None else high
    return pa.Array.from_buffers(kind, len(low), [bitmap(valid), pa.py_buffer(both)])


def string_array(
    kind: pa.DataType,
    data: Any,
    starts: Any,
    sizes: Any,
    valid: Any,
    kernels: Kernels,
    *,
    padded: int = 0,
    letters: str | None = None,
) -> pa.Array:
    """Strings of a buffer, each filled with zeros up to `padded` bytes; `letters` has the letter of each byte of a
    text. Raises pyarrow.ArrowInvalid: a text is no UTF-8; UnicodeDecodeError: a byte has no letter; OverflowError: they
    exceed what Arrow takes."""
    import pyarrow as pa

    count = len(starts)
    room = len(data) + count * padded  # no string is longer than the buffer
    if room > WIDE_ROW * count:
        room = _expect_room(int(np.dot(np.maximum(sizes, padded) if padded else sizes, valid)))
    offsets = np.empty(count + 1, dtype=np.int32)
    text = np.empty(room, dtype=np.uint8)
    used = kernels.copy_strings(data, starts, sizes, valid, padded, offsets, text)
    text = text[:used]
    is_ascii = np.min(text.view(np.int8), initial=0) >= 0
    if letters is not None and not (is_ascii and letters[:128].isascii()):
        offsets, text = _as_utf8(offsets, text, letters)
    array = pa.Array.from_buffers(kind, count, [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(text)])
    if kind == pa.string() and letters is None and not is_ascii:  # ASCII needs no look at each string
        array.validate(full=True)
    return array


def shown_array(
    data: Any, starts: Any, sizes: Any, valid: Any, kernels: Kernels, op: TextOp, argument: int
) -> pa.Array | None:
    """Values as texts of a kernel; None if one is malformed."""
    import pyarrow as pa

    count = len(starts)
    offsets = np.empty(count + 1, dtype=np.int32)
    text = np.empty(int(np.count_nonzero(valid)) * TEXT_SIZES[op], dtype=np.uint8)
    used = kernels.write_texts(data, starts, sizes, valid, int(op), argument, offsets, text)
    if used < 0:
        return None
    return pa.Array.from_buffers(pa.string(), count, [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(text[:used])])


def _expect_room(size: int) -> int:
    if size > TEXT_BYTES_MAX:
        raise OverflowError(f"{size} bytes of strings in one batch")
    return size


def _as_utf8(offsets: Any, text: Any, letters: str) -> tuple[Any, Any]:
    data = text.tobytes()
    translated = codecs.charmap_decode(data, "strict", letters)[0].encode()
    _expect_room(len(translated))
    more = np.frombuffer(data.translate(_bytes_more(letters)), dtype=np.uint8)
    places = np.flatnonzero(more)  # of bytes that become several
    passed = np.zeros(len(places) + 1, dtype=np.int32)
    np.cumsum(more[places], out=passed[1:])
    return offsets + passed[np.searchsorted(places, offsets)], np.frombuffer(translated, dtype=np.uint8)


@functools.cache
def _bytes_more(letters: str) -> bytes:
    return bytes(len(letter.encode()) - 1 for letter in letters)


def bitmap(valid: Any) -> pa.Buffer | None:
    """A bit for each nonzero byte, the lowest first; None if all are."""
    import pyarrow as pa

    if valid is None or valid.view(bool).all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
