"""Compressed integers, against the examples of the format."""

import pytest

from ibbmaster.codec.compressed_int import decode, encode

EXAMPLES = {
    0: "00",
    1: "08",
    31: "f8",
    32: "01 01",
    255: "f9 07",
    256: "01 08",
    8191: "f9 ff",
    8192: "02 00 01",
    16384: "02 00 02",
    16389: "2a 00 02",
    65535: "fa ff 07",
    2097151: "fa ff ff",
    2097152: "03 00 00 01",
    2**29 - 1: "fb ff ff ff",
    2**29: "04 00 00 00 01",
    2**32 - 1: "fc ff ff ff 07",
    2**37 - 1: "fc ff ff ff ff",
    2**37: "05 00 00 00 00 01",
    2**45 - 1: "fd ff ff ff ff ff",
    2**45: "06 00 00 00 00 00 01",
    2**53 - 1: "fe ff ff ff ff ff ff",
    2**53: "07 00 00 00 00 00 00 01 00",
    2**63: "07 00 00 00 00 00 00 00 04",
    2**64 - 2: "f7 ff ff ff ff ff ff ff 07",
    2**64 - 1: "ff ff ff ff ff ff ff ff 07",
}


@pytest.mark.parametrize(("value", "encoded"), EXAMPLES.items())
def test_decode_and_encode_agree_with_the_example(value, encoded):
    data = bytes.fromhex(encoded)
    assert encode(value) == data
    assert decode(b"x" + data + b"y", 1) == (value, 1 + len(data))


@pytest.mark.parametrize("encoded", EXAMPLES.values())
def test_a_cut_number_is_refused(encoded):
    data = bytes.fromhex(encoded)
    for size in range(len(data)):
        with pytest.raises(ValueError, match="end of the data"):
            decode(data[:size], 0)


def test_a_number_of_more_than_64_bits_is_refused():
    with pytest.raises(ValueError, match="more than 64 bits"):
        decode(b"\xff" * 9, 0)
