import pytest

from ibbmaster.storage.codec.compressed_int import decode, encode
from tests.machinery.tables import rows_of

EXAMPLES = {int(value): encoded for value, encoded in rows_of(__file__, "compressed_ints")}


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
