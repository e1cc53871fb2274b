import contextlib
import functools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.replication.wire import response as wire
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability, StatusFlag
from ibbmaster.replication.wire.command import QueryCommand, Statistics, decode_command
from ibbmaster.replication.wire.packet import frame_payloads
from ibbmaster.replication.wire.refusal import broken_off
from ibbmaster.work import BreakReason
from tests.case_table import data_beside
from tests.machinery.client_wire import decode_column, decode_column_count, decode_eof, decode_row

PLAIN = Capability.PROTOCOL_41
EXTENDED = SERVER_DEFAULT | Capability.EXTENDED_METADATA | Capability.CACHE_METADATA

RECORDED = data_beside(__file__)  # dump-protocol, 20.1


def result_set(name: str) -> wire.ResultSet:
    column, value = wire.ColumnDefinition(**RECORDED[name]["column"]), RECORDED[name]["value"]
    return wire.ResultSet(columns=(column,), rows=((value.encode(),),))


TIMESTAMP, CHECKSUM, ENGINE = map(result_set, ("timestamp", "checksum", "engine"))
UNKNOWN_VARIABLE = wire.Err(code=1193, sqlstate="HY000", text="Unknown system variable 'binlog_storage_engine'")
PROOF = b"\x0164A7963D78AC67E4D9B233A753FA5B7C5CB88287285E95DE9F208D7DC1B8DE45"

CASES: dict[str, tuple[wire.Response, bytes]] = {
    "OK": (wire.Ok(), bytes.fromhex("07000001 00000002000000")),
    "a result set of a number": (TIMESTAMP, bytes.fromhex(RECORDED["timestamp"]["packets"])),
    "a result set of a text": (CHECKSUM, bytes.fromhex(RECORDED["checksum"]["packets"])),
    "a result set of a short text": (ENGINE, bytes.fromhex(RECORDED["engine"]["packets"])),
    "an error": (UNKNOWN_VARIABLE, bytes.fromhex(RECORDED["unknown variable"]["packets"])),
    "the end of a dump": (wire.Eof(), bytes.fromhex("05000001 fe00000200")),
    "bare text": (wire.Text(text="Uptime: 1"), bytes.fromhex("09000001") + b"Uptime: 1"),
}


@pytest.mark.parametrize(("response", "packets"), CASES.values(), ids=CASES)
def test_described_answers_are_ours(response: wire.Response, packets: bytes) -> None:
    assert frame_payloads(encode_response(response), 1)[0] == packets


def test_the_described_ok_with_a_proof_is_ours() -> None:
    payload = wire.encode_ok(wire.Ok(message=PROOF))
    assert payload[:12] == bytes.fromhex("00000002000000 41 01363441")
    assert len(payload) == 0x49
    assert wire.decode_ok(payload) == wire.Ok(message=PROOF)


def decode_answer(payloads: list[bytes], capabilities: Capability) -> wire.Response:
    if payloads[0][0] == 0:
        return wire.decode_ok(payloads[0])
    if payloads[0][0] == 0xFF:
        return wire.decode_err(payloads[0])
    count = decode_column_count(payloads[0], capabilities)
    columns = tuple(decode_column(payload, capabilities) for payload in payloads[1 : count + 1])
    eof = decode_eof(payloads[count + 1])
    *rows, last = payloads[count + 2 :]
    values = [decode_row(row, count) for row in rows]
    ended = values if wire.is_eof(last) else rows_that_end(values, wire.decode_err(last))
    return wire.ResultSet(columns=columns, rows=ended, status=eof.status, warning_count=eof.warning_count)


def rows_that_end(rows: Iterable[wire.Row], error: wire.Err) -> Iterator[wire.Row]:
    yield from rows
    raise wire.EndedRowsError(error)


def test_recorded_answers_to_queries_decode_and_encode(readable_conversation: Any) -> None:
    """Also those in the longer forms of the extended capabilities, which the `mariadb` client asks for."""
    capabilities = readable_conversation.greeting.capabilities & readable_conversation.login.capabilities
    for exchange in readable_conversation.exchanges:
        is_query = isinstance(decode_command(exchange.command.payload), QueryCommand)
        if is_query and exchange.answer and all(packet.is_whole for packet in exchange.answer):
            payloads = [packet.payload for packet in exchange.answer]
            response = decode_answer(payloads, capabilities)
            if isinstance(response, wire.Ok) and response.status & StatusFlag.SESSION_STATE_CHANGED:
                continue  # session tracking is not ours
            *encoded, last = encode_response(response, capabilities)
            assert encoded == payloads[:-1]
            if wire.is_eof(last):  # our last EOF has the status of the first; a server may add that it used no index
                last = wire.encode_eof(replace(decode_eof(last), status=decode_eof(payloads[-1]).status))
            assert last == payloads[-1]
            assert [packet.sequence for packet in exchange.answer] == list(range(1, len(payloads) + 1))


def test_the_recordings_hold_both_forms_of_result_sets(find_packet: Callable[..., Any]) -> None:
    plain = find_packet("plain_slave_pos_crc32.11.8-to-11.8", "column 'Variable_name'").payload
    extended = find_packet("operator_client.11.8-to-11.8", "column 'File'").payload
    assert decode_column(plain).original_name == "VARIABLE_NAME"
    assert decode_column(extended, EXTENDED).name == "File"
    assert decode_column(extended, EXTENDED).column_type == wire.FieldType.VAR_STRING
    with pytest.raises(RemoteProtocolError):
        decode_column(extended)


def test_recorded_statistics_are_bare_text(conversation: Any) -> None:
    for exchange in conversation.exchanges:
        if decode_command(exchange.command.payload) == Statistics():
            text = exchange.answer[0].payload.decode()
            assert text.startswith("Uptime: ")
            assert list(encode_response(wire.Text(text=text))) == [exchange.answer[0].payload]


def test_with_extended_metadata_there_is_one_byte_and_one_string_more() -> None:
    plain = list(encode_response(TIMESTAMP))
    extended = list(encode_response(TIMESTAMP, EXTENDED))
    assert extended[0] == b"\x01\x01"
    assert extended[1] == plain[1][:-13] + b"\x00" + plain[1][-13:]
    assert extended[2:] == plain[2:]
    assert decode_answer(extended, EXTENDED) == decode_answer(plain, PLAIN)


def test_null_and_empty_and_long_values_make_a_row() -> None:
    row = (None, b"", b"a" * 251, b"b" * 70_000)
    payload = wire.encode_row(row)
    assert payload.startswith(b"\xfb\x00\xfc\xfb\x00aa")
    assert decode_row(payload, 4) == row


def test_a_result_set_may_be_empty() -> None:
    payloads = list(encode_response(wire.ResultSet(columns=ENGINE.columns)))
    assert len(payloads) == 4
    assert payloads[2] == payloads[3] == wire.encode_eof(wire.Eof())


def test_an_error_may_come_instead_of_the_last_eof() -> None:
    error = wire.Err(code=1220, sqlstate="HY000", text="Error when executing command SHOW BINLOG EVENTS: …")
    payloads = list(encode_response(wire.ResultSet(columns=ENGINE.columns, rows=rows_that_end((), error))))
    assert payloads[-1] == wire.encode_err(error)
    assert wire.decode_err(payloads[-1]) == error


def test_rows_are_read_only_while_they_are_sent() -> None:
    rows = iter([(b"0",), (b"1",)])
    payloads = encode_response(wire.ResultSet(columns=TIMESTAMP.columns, rows=rows))
    assert [next(payloads) for _ in range(4)][3] == b"\x010"
    assert next(rows) == (b"1",)


def test_more_results_are_announced_in_every_status() -> None:
    assert wire.with_more_results(wire.Ok()) == wire.Ok(status=StatusFlag.AUTOCOMMIT | StatusFlag.MORE_RESULTS)
    marked = wire.with_more_results(TIMESTAMP)
    assert [payload[3] for payload in encode_response(marked) if wire.is_eof(payload)] == [0x0A, 0x0A]
    assert wire.with_more_results(UNKNOWN_VARIABLE) == UNKNOWN_VARIABLE


def test_an_error_before_the_login_has_no_sqlstate() -> None:
    payload = bytes.fromhex("ff1004") + b"Too many connections"
    assert wire.decode_err(payload) == wire.Err(code=1040, sqlstate="HY000", text="Too many connections")


def test_an_error_text_may_hold_any_letters() -> None:
    error = wire.Err(code=1064, sqlstate="42000", text="near 'Grüße 日本 🐬'")
    assert wire.decode_err(wire.encode_err(error)) == error
    assert wire.encode_err(wire.Err(code=1064, sqlstate="42000", text="half a pair: \ud800")).endswith(b": ?")


def test_a_row_that_begins_like_eof_is_no_eof() -> None:
    row = wire.encode_row((b"x" * (1 << 24),))
    assert row[0] == 0xFE
    assert not wire.is_eof(row)
    assert wire.is_eof(wire.encode_eof(wire.Eof()))
    assert not wire.is_eof(b"")


REFUSED: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "nothing as OK": (wire.decode_ok, b""),
    "ERR as OK": (wire.decode_ok, b"\xff\x00\x00"),
    "a cut OK": (wire.decode_ok, bytes.fromhex("000000020000")),
    "an OK whose message leads out of it": (wire.decode_ok, bytes.fromhex("00000002000000 05 61")),
    "nothing as ERR": (wire.decode_err, b""),
    "a cut ERR": (wire.decode_err, b"\xff\x10"),
    "a long EOF": (decode_eof, bytes.fromhex("fe0000020000")),
    "a column with another tail": (decode_column, wire.encode_column(TIMESTAMP.columns[0])[:-1] + b"\x00\x00"),
    "a column count with more behind it": (decode_column_count, b"\x01\x01"),
    "a row with a value too many": (lambda data: decode_row(data, 1), b"\x01a\x01b"),
    "a row with a value missing": (lambda data: decode_row(data, 2), b"\x01a"),
}


@pytest.mark.parametrize(("decode", "payload"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(decode: Callable[[bytes], object], payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode(payload)


def test_damaged_and_random_answers_are_a_value_or_an_error(damaged: Any, rng: random.Random) -> None:
    extended = [functools.partial(decode, capabilities=EXTENDED) for decode in (decode_column, decode_column_count)]
    row = functools.partial(decode_row, column_count=2)
    decoders = [wire.decode_ok, wire.decode_err, decode_eof, decode_column, decode_column_count, *extended, row]
    samples = [wire.encode_ok(wire.Ok(message=PROOF)), wire.encode_err(UNKNOWN_VARIABLE), wire.encode_eof(wire.Eof())]
    samples += [wire.encode_column(CHECKSUM.columns[0]), wire.encode_row((None, b"value"))]
    payloads = [data for sample in samples for data in damaged(sample)]
    payloads += [rng.randbytes(rng.randrange(80)) for _ in range(2000)]
    for payload in payloads:
        for decode in decoders:
            with contextlib.suppress(RemoteProtocolError):
                decode(payload)


def test_a_prepared_statement_tells_what_it_wants_and_gives() -> None:
    """As MariaDB 11.8 answers SELECT ?, 1."""
    unknown = wire.ColumnDefinition(name="?", column_type=6, length=0, collation_id=63, flags=0x80)
    number = wire.ColumnDefinition(name="1", column_type=3, length=1, collation_id=63, flags=0x81)
    payloads = list(encode_response(wire.PreparedOk(statement_id=7, parameters=(unknown,), columns=(unknown, number))))

    assert payloads[0] == bytes.fromhex("00 07000000 0200 0100 00 0000")
    assert payloads[1] == b"\x03def\x00\x00\x00\x01?\x00\x0c?\x00\x00\x00\x00\x00\x06\x80\x00\x00\x00\x00"
    assert [wire.is_eof(payload) for payload in payloads] == [False, False, True, False, False, True]
    assert list(encode_response(wire.PreparedOk(statement_id=1))) == [bytes.fromhex("00 01000000 0000 0000 00 0000")]


def test_rows_of_a_prepared_statement_are_binary() -> None:
    column = wire.ColumnDefinition(name="1", column_type=3, length=1)
    payloads = list(encode_response(wire.ResultSet(columns=(column,), rows=[(b"5",), (None,)], is_binary=True)))
    assert payloads[3:5] == [bytes.fromhex("00 00 05000000"), bytes.fromhex("00 04")]


@pytest.mark.parametrize(
    ("reason", "code"),
    {BreakReason.KILLED: 1317, BreakReason.LEFT: 1317, BreakReason.TIMED_OUT: 1969, BreakReason.STOPPED: 1053}.items(),
)
def test_each_reason_has_the_number_that_a_server_gives_it(reason, code):
    assert broken_off(reason).err.code == code
