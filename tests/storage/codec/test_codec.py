import random

import pytest

from ibbmaster.storage.codec import compressed_int, lenenc
from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.codec.crc32c import by_crcmod, crc32c
from ibbmaster.storage.codec.printable import printable
from tests.case_table import rows_of

COMPRESSED = [
    (compressed_int.encode, compressed_int.decode, int(value), encoded)
    for value, encoded in rows_of(__file__, "compressed_ints")
]
LENGTHS = {0: "00", 250: "fa", 251: "fc fb 00", 65535: "fc ff ff", 65536: "fd 00 00 01", 2**24 - 1: "fd ff ff ff"}
LENGTHS |= {2**24: "fe 00 00 00 01 00 00 00 00", 2**64 - 1: "fe ff ff ff ff ff ff ff ff"}
ENCODED = [(lenenc.encode_int, lenenc.decode_int, value, encoded) for value, encoded in LENGTHS.items()]
PUBLISHED = {  # RFC 3720, B.4, and the check value of the catalogue
    b"": 0x00000000,
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(reversed(range(32))): 0x113FDB5C,
    bytes(508): 0xEC57A9C3,
    bytes(16380): 0xDD9E4F5A,
}


@pytest.mark.parametrize(("encode", "decode", "value", "encoded"), [*COMPRESSED, *ENCODED])
def test_a_number_is_decoded_and_encoded_alike_and_refused_where_it_is_cut(encode, decode, value, encoded):
    data = bytes.fromhex(encoded)
    assert encode(value) == data
    assert decode(b"x" + data + b"y", 1) == (value, 1 + len(data))
    for size in range(len(data)):
        with pytest.raises(ValueError, match="end of the data"):
            decode(data[:size], 0)


@pytest.mark.parametrize(
    ("decode", "data", "problem"),
    [
        (compressed_int.decode, b"\xff" * 9, "more than 64 bits"),
        (lenenc.decode_int, b"\xfb" + bytes(9), "starts no length-encoded integer"),
        (lenenc.decode_int, b"\xff" + bytes(9), "starts no length-encoded integer"),
    ],
    ids=["too large", "NULL", "the mark of an error"],
)
def test_what_is_no_number_is_refused(decode, data, problem):
    with pytest.raises(ValueError, match=problem):
        decode(data, 0)


def test_a_string_is_given_with_its_end_and_refused_when_cut():
    data = lenenc.encode_bytes(b"x" * 300)
    assert lenenc.decode_bytes(data + b"rest", 0) == (b"x" * 300, len(data))
    with pytest.raises(ValueError, match="over the end"):
        lenenc.decode_bytes(data[:-1], 0)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_zero_or_not_and_has_its_checksum(kind):
    for size in (0, 1, 7, 16384):
        assert is_zero(kind(bytes(size)))
        for place in {0, size // 2, size - 1} if size else ():
            data = bytearray(size)
            data[place] = 1
            assert not is_zero(kind(bytes(data))), (size, place)
    for size in (1, 7, 16380, 100_001):
        data = random.Random(7).randbytes(size)
        assert crc32c(kind(data)) == by_crcmod(data)


@pytest.mark.parametrize(("data", "value"), PUBLISHED.items(), ids=lambda value: "")
@pytest.mark.parametrize("compute", [crc32c, by_crcmod])
def test_published_values(compute, data, value):
    assert compute(data) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("größe 表", "größe 表"), ("", ""), ("\x1b[31mred\x07", "\\u001b[31mred\\u0007")),
        *(("a\nb\tc\r", "a\\u000ab\\u0009c\\u000d"), ("\udcff\u202e\u200b\x9b", "\\udcff\\u202e\\u200b\\u009b")),
    ],
)
def test_only_what_can_be_seen_is_left_as_it_is(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()
