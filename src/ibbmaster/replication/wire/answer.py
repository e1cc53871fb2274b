"""The payloads of one whole answer, in the order in which they are sent."""

import struct
from collections.abc import Iterator, Sequence

from ibbmaster.storage.codec import lenenc
from .binary_row import encode_binary_row
from .capability import Capability
from .packet import frame_packets, frame_payloads
from .response import (
    COLUMNS_FOLLOW,
    OK_MARK,
    BlockResultSet,
    ColumnDefinition,
    EndedRowsError,
    Eof,
    Err,
    Ok,
    PreparedOk,
    Response,
    ResultSet,
    SharedResultSet,
    Text,
    encode_column,
    encode_eof,
    encode_err,
    encode_ok,
    encode_row,
)

FRAMES_KEPT = 4  # of one answer: clients of one kind ask alike
_PREPARED = struct.Struct("<BIHHBH")  # mark, statement id, columns, parameters, a filler, warnings


def encode_response(response: Response, capabilities: Capability = Capability.PROTOCOL_41) -> Iterator[bytes]:
    match response:
        case Ok():
            yield encode_ok(response)
        case Err():
            yield encode_err(response)
        case Eof():
            yield encode_eof(response)
        case Text():
            yield response.text.encode()
        case ResultSet():
            yield from _encode_result_set(response, capabilities)
        case BlockResultSet():  # without its rows, which are packets already
            yield from _encode_columns(response.columns, response.status, 0, capabilities)
        case PreparedOk():
            yield from _encode_prepared(response, capabilities)


def framed_response(response: Response, sequence: int, capabilities: Capability) -> tuple[bytes, int] | None:
    """The packets of an answer that is one packet, or was framed before, and the number after the last; else None."""
    match response:
        case Ok():
            return frame_packets(encode_ok(response), sequence)
        case SharedResultSet():
            known = response.frames.get((sequence, capabilities))
            if known is None:
                known = frame_payloads(encode_response(response, capabilities), sequence)
                if len(response.frames) < FRAMES_KEPT:
                    response.frames[sequence, capabilities] = known
            return known
        case _:
            return None


def _encode_columns(
    columns: Sequence[ColumnDefinition], status: int, warning_count: int, capabilities: Capability
) -> Iterator[bytes]:
    has_metadata_byte = capabilities & Capability.CACHE_METADATA
    yield lenenc.encode_int(len(columns)) + (COLUMNS_FOLLOW if has_metadata_byte else b"")
    yield from _encode_definitions(columns, Eof(status=status, warning_count=warning_count), capabilities)


def _encode_definitions(columns: Sequence[ColumnDefinition], end: Eof, capabilities: Capability) -> Iterator[bytes]:
    for column in columns:
        yield encode_column(column, capabilities)
    yield encode_eof(end)


def _encode_prepared(prepared: PreparedOk, capabilities: Capability) -> Iterator[bytes]:
    yield _PREPARED.pack(OK_MARK, prepared.statement_id, len(prepared.columns), len(prepared.parameters), 0, 0)
    for group in (prepared.parameters, prepared.columns):
        if group:
            yield from _encode_definitions(group, Eof(status=prepared.status), capabilities)


def _encode_result_set(result: ResultSet, capabilities: Capability) -> Iterator[bytes]:
    yield from _encode_columns(result.columns, result.status, result.warning_count, capabilities)
    try:
        if result.is_binary:
            for row in result.rows:
                yield encode_binary_row(result.columns, row)
        else:
            for row in result.rows:
                yield encode_row(row)
    except EndedRowsError as ended:
        yield encode_err(ended.err)
    else:
        yield encode_eof(Eof(status=result.status, warning_count=result.warning_count))
