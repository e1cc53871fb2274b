import struct

import pytest

from ibbmaster.replication.event.column_types.vector import vector_of


def test_a_vector_is_its_numbers():
    assert vector_of(struct.pack("<3f", 0.5, -1.0, 3.0)) == (0.5, -1.0, 3.0)
    assert vector_of(b"") == ()


def test_half_a_number_is_refused():
    for size in (1, 2, 3, 5):
        with pytest.raises(ValueError, match=f"a vector of {size} bytes"):
            vector_of(bytes(size))
