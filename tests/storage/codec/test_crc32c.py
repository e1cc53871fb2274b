import random

import pytest

from ibbmaster.storage.codec.crc32c import by_crcmod, crc32c

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


@pytest.mark.parametrize(("data", "value"), PUBLISHED.items(), ids=lambda value: "")
@pytest.mark.parametrize("compute", [crc32c, by_crcmod])
def test_published_values(compute, data, value):
    assert compute(data) == value


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_both_implementations_agree_on_any_buffer(kind):
    random_source = random.Random(7)
    for size in (1, 7, 16380, 100_001):
        data = random_source.randbytes(size)
        assert crc32c(kind(data)) == by_crcmod(data)
