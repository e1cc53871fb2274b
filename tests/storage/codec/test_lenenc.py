import pytest

from ibbmaster.storage.codec.lenenc import decode_bytes, decode_int, encode_bytes, encode_int

EXAMPLES = {
    0: "00",
    250: "fa",
    251: "fc fb 00",
    65535: "fc ff ff",
    65536: "fd 00 00 01",
    2**24 - 1: "fd ff ff ff",
    2**24: "fe 00 00 00 01 00 00 00 00",
    2**64 - 1: "fe ff ff ff ff ff ff ff ff",
}


@pytest.mark.parametrize(("value", "encoded"), EXAMPLES.items())
def test_decode_and_encode_agree(value, encoded):
    data = bytes.fromhex(encoded)
    assert encode_int(value) == data
    assert decode_int(data, 0) == (value, len(data))


@pytest.mark.parametrize("encoded", EXAMPLES.values())
def test_a_cut_number_is_refused(encoded):
    data = bytes.fromhex(encoded)
    for size in range(len(data)):
        with pytest.raises(ValueError, match="end of the data"):
            decode_int(data[:size], 0)


@pytest.mark.parametrize("first", [0xFB, 0xFF])
def test_null_and_error_marks_start_no_number(first):
    with pytest.raises(ValueError, match="starts no length-encoded integer"):
        decode_int(bytes([first]) + bytes(9), 0)


def test_a_string_is_given_with_its_end_and_refused_when_cut():
    data = encode_bytes(b"x" * 300)
    assert decode_bytes(data + b"rest", 0) == (b"x" * 300, len(data))
    with pytest.raises(ValueError, match="over the end"):
        decode_bytes(data[:-1], 0)
