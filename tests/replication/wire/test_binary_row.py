"""Rows and parameters of prepared statements; the bytes were sent by MariaDB 11.8."""

from decimal import Decimal

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.replication.wire.binary_row import UNSIGNED, decode_parameters, encode_binary_row, encode_binary_value
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from tests.case_table import data_beside

CASES = data_beside(__file__)
PARAMETERS = {name: (bytes.fromhex(data), values) for name, (data, values) in CASES["parameters"].items()}
PARAMETERS |= {
    "a decimal": (bytes.fromhex("00 01 f600 04 312e3530"), [Decimal("1.50")]),
    "bytes that are no text": (bytes.fromhex("00 01 fc00 01 ff"), ["\udcff"]),
}


@pytest.mark.parametrize(("column_type", "text", "encoded"), CASES["values"].values(), ids=CASES["values"])
def test_a_value_has_the_bytes_of_its_type(column_type, text, encoded):
    assert encode_binary_value(FieldType[column_type], text.encode()) == bytes.fromhex(encoded)


def test_a_row_says_which_values_are_null():
    columns = [ColumnDefinition(name="c", column_type=FieldType.VAR_STRING, length=1)] * 7
    assert encode_binary_row(columns, [None, b"b", None, None, None, None, None]) == bytes.fromhex("00 f4 01 01 62")


def test_a_moment_that_is_none_is_zero():
    assert encode_binary_value(FieldType.DATETIME, b"never") == encode_binary_value(FieldType.TIME, b"never") == b"\0"


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
