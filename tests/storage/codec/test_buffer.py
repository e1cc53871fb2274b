import pytest

from ibbmaster.storage.codec.buffer import is_zero


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_zero_is_every_byte_or_it_is_not(kind):
    for size in (0, 1, 7, 16384):
        assert is_zero(kind(bytes(size)))
        for place in {0, size // 2, size - 1} if size else ():
            data = bytearray(size)
            data[place] = 1
            assert not is_zero(kind(bytes(data))), (size, place)
