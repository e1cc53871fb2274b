"""The payloads of one whole answer, in the order in which they are sent."""

import struct
from collections.abc import Iterator, Sequence

from ibbmaster.storage.codec import lenenc
from . import response as responses
from .binary_row import encode_binary_row
from .capability import Capability
from .packet import frame_packets, frame_payloads

FRAMES_KEPT = 4  # of one answer: clients of one kind ask alike
_PREPARED = struct.Struct("<BIHHBH")  # mark, statement id, columns, parameters, a filler, warnings


def encode_response(response: responses.Response, capabilities: Capability = Capability.PROTOCOL_41) -> Iterator[bytes]:
    match response:
        case responses.Ok():
            yield responses.encode_ok(response)
        case responses.Err():
            yield responses.encode_err(response)
        case responses.Eof():
            yield responses.encode_eof(response)
        case responses.Text():
            yield response.text.encode()
        case responses.ResultSet():
            yield from _encode_result_set(response, capabilities)
        case responses.BlockResultSet():  # without its rows, which are packets already
            yield from _encode_columns(response.columns, response.status, 0, capabilities)
        case responses.PreparedOk():
            yield from _encode_prepared(response, capabilities)


def framed_response(response: responses.Response, sequence: int, capabilities: Capability) -> tuple[bytes, int] | None:
    """The packets of an answer that is one packet, or was framed before, and the number after the last; else None."""
    match response:
        case responses.Ok():
            return frame_packets(responses.encode_ok(response), sequence)
        case responses.SharedResultSet():
            known = response.frames.get((sequence, capabilities))
            if known is None:
                known = frame_payloads(encode_response(response, capabilities), sequence)
                if len(response.frames) < FRAMES_KEPT:
                    response.frames[sequence, capabilities] = known
            return known
        case _:
            return None


def _encode_columns(
    columns: Sequence[responses.ColumnDefinition], status: int, warning_count: int, capabilities: Capability
) -> Iterator[bytes]:
    has_metadata_byte = capabilities & Capability.CACHE_METADATA
    yield lenenc.encode_int(len(columns)) + (responses.COLUMNS_FOLLOW if has_metadata_byte else b"")
    yield from _encode_definitions(columns, responses.Eof(status=status, warning_count=warning_count), capabilities)


def _encode_definitions(
    columns: Sequence[responses.ColumnDefinition], end: responses.Eof, capabilities: Capability
) -> Iterator[bytes]:
    for column in columns:
        yield responses.encode_column(column, capabilities)
    yield responses.encode_eof(end)


def _encode_prepared(prepared: responses.PreparedOk, capabilities: Capability) -> Iterator[bytes]:
    yield _PREPARED.pack(
        responses.OK_MARK, prepared.statement_id, len(prepared.columns), len(prepared.parameters), 0, 0
    )
    for group in (prepared.parameters, prepared.columns):
        if group:
            yield from _encode_definitions(group, responses.Eof(status=prepared.status), capabilities)


def _encode_result_set(result: responses.ResultSet, capabilities: Capability) -> Iterator[bytes]:
    yield from _encode_columns(result.columns, result.status, result.warning_count, capabilities)
    try:
        if result.is_binary:
            for row in result.rows:
                yield encode_binary_row(result.columns, row)
        else:
            for row in result.rows:
                yield responses.encode_row(row)
    except responses.EndedRowsError as ended:
        yield responses.encode_err(ended.err)
    else:
        yield responses.encode_eof(responses.Eof(status=result.status, warning_count=result.warning_count))
