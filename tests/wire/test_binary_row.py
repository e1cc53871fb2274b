"""Rows and parameters of prepared statements; the bytes were sent by MariaDB 11.8."""

from decimal import Decimal

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.wire.binary_row import UNSIGNED, decode_parameters, encode_binary_row, encode_binary_value
from ibbmaster.wire.response import ColumnDefinition, FieldType

VALUES = {
    "tiny": (FieldType.TINY, b"-1", "ff"),
    "year": (FieldType.YEAR, b"2020", "e407"),
    "medium": (FieldType.INT24, b"-2", "feffffff"),
    "long": (FieldType.LONG, b"5", "05000000"),
    "unsigned long long": (FieldType.LONGLONG, b"18446744073709551615", "ffffffffffffffff"),
    "double": (FieldType.DOUBLE, b"1e20", "408cb5781daf1544"),
    "float": (FieldType.FLOAT, b"1.5", "0000c03f"),
    "decimal": (FieldType.NEWDECIMAL, b"1.50", "04 312e3530"),
    "text": (FieldType.VAR_STRING, b"AB", "02 4142"),
    "datetime": (FieldType.DATETIME, b"2020-01-02 03:04:05.670000", "0b e4070102030405 30390a00"),
    "datetime without a fraction": (FieldType.DATETIME, b"2020-01-02 03:04:05", "07 e4070102030405"),
    "a day": (FieldType.DATE, b"2020-01-02", "04 e4070102"),
    "zero": (FieldType.TIMESTAMP, b"0000-00-00 00:00:00", "00"),
    "time": (FieldType.TIME, b"-25:04:05.5", "0c 01 01000000 010405 20a10700"),
    "whole days": (FieldType.TIME, b"48:00:00", "08 00 02000000 000000"),
    "time without a fraction": (FieldType.TIME, b"01:00:00", "08 00 00000000 010000"),
    "no time": (FieldType.TIME, b"00:00:00", "00"),
}


@pytest.mark.parametrize(("column_type", "text", "encoded"), VALUES.values(), ids=VALUES)
def test_a_value_has_the_bytes_of_its_type(column_type, text, encoded):
    assert encode_binary_value(column_type, text) == bytes.fromhex(encoded)


def test_a_row_says_which_values_are_null():
    columns = [ColumnDefinition(name="c", column_type=FieldType.VAR_STRING, length=1)] * 7
    row = [None, b"b", None, None, None, None, None]
    assert encode_binary_row(columns, row) == bytes.fromhex("00 f4 01 01 62")


def test_a_moment_that_is_none_is_zero():
    assert encode_binary_value(FieldType.DATETIME, b"never") == encode_binary_value(FieldType.TIME, b"never") == b"\0"


PARAMETERS = {
    "a number": (bytes.fromhex("00 01 0800 0700000000000000"), [7]),
    "an unsigned one": (bytes.fromhex("00 01 0180 ff"), [255]),
    "a negative one": (bytes.fromhex("00 01 0100 ff"), [-1]),
    "null by its bit": (bytes.fromhex("01 01 0300"), [None]),
    "null by its type": (bytes.fromhex("00 01 0600"), [None]),
    "a text": (bytes.fromhex("00 01 fd00 03 616263"), ["abc"]),
    "bytes that are no text": (bytes.fromhex("00 01 fc00 01 ff"), ["\udcff"]),
    "a decimal": (bytes.fromhex("00 01 f600 04 312e3530"), [Decimal("1.50")]),
    "a double": (bytes.fromhex("00 01 0500 000000000000f83f"), [1.5]),
    "no number": (bytes.fromhex("00 01 0500 000000000000f87f"), [None]),
    "a day": (bytes.fromhex("00 01 0a00 04 e4070102"), ["2020-01-02"]),
    "a moment": (bytes.fromhex("00 01 0c00 0b e4070102030405 30390a00"), ["2020-01-02 03:04:05.670000"]),
    "a time": (bytes.fromhex("00 01 0b00 08 01 01000000 010405"), ["-25:04:05"]),
    "two": (bytes.fromhex("00 01 0300 0100 01000000 02"), [1, 2]),
}


@pytest.mark.parametrize(("data", "values"), PARAMETERS.values(), ids=PARAMETERS)
def test_parameters_are_read_by_their_types(data, values):
    assert decode_parameters(data, (), len(values), {})[0] == values


@pytest.mark.parametrize(("data", "values"), PARAMETERS.values(), ids=PARAMETERS)
def test_parameters_that_are_cut_or_too_long_are_refused(data, values):
    for end in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            decode_parameters(data[:end], (), len(values), {})
    with pytest.raises(RemoteProtocolError, match="1 bytes behind"):
        decode_parameters(data + b"\0", (), len(values), {})


def test_types_need_not_be_sent_again():
    assert decode_parameters(bytes.fromhex("00 00 07000000"), (3,), 1, {}) == ([7], [3])
    with pytest.raises(RemoteProtocolError, match="types of 0 parameters, expected 1"):
        decode_parameters(bytes.fromhex("00 00 07000000"), (), 1, {})


def test_what_came_in_pieces_is_not_sent_again():
    assert decode_parameters(bytes.fromhex("00 01 fc00 0100 05"), (), 2, {0: b"long"})[0] == ["long", 5]


def test_without_parameters_nothing_is_read():
    assert decode_parameters(b"whatever", (), 0, {}) == ([], [])


def test_any_flipped_bits_give_values_or_are_refused(rng):
    for data, values in PARAMETERS.values():
        for _ in range(200):
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            try:
                found, types = decode_parameters(bytes(changed), (), len(values), {})
            except RemoteProtocolError:
                continue
            assert len(found) == len(types) == len(values)


def test_a_type_that_no_client_sends_is_refused():
    with pytest.raises(RemoteProtocolError, match="of type 14"):
        decode_parameters(bytes.fromhex("00 01 0e00 00"), (), 1, {})
    assert UNSIGNED == 0x8000
