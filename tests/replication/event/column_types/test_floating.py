import math
import random
import struct

import pytest

from ibbmaster.errors import EventError
from ibbmaster.replication.event.column_types.registry import BY_WORD, value_reader
from ibbmaster.replication.event.rows.column import ColumnType
from tests.replication.event.conftest import column_of, written


@pytest.mark.parametrize(("word", "layout"), [("float", "<f"), ("double", "<d"), ("real", "<d")])
def test_a_number_reads_back_as_it_was_packed(word, layout):
    column = written(word)
    read = value_reader(column_of(column.type))
    size = struct.calcsize(layout)
    for number in (0.0, -0.0, math.inf, 1.5, *(random.uniform(-1e30, 1e30) for _ in range(100))):
        data = struct.pack(layout, number)
        assert column.encode(number) == data
        assert read(data, 0) == (struct.unpack(layout, data)[0], size)
    assert column.metadata == bytes([size])


def test_what_does_not_fit_is_refused():
    encode = written("float").encode
    for value in (1e39, 10**400, None, []):
        with pytest.raises(ValueError, match="does not fit"):
            encode(value)


def test_a_size_that_is_not_that_of_the_type_is_refused():
    with pytest.raises(EventError, match="column 2 has floats of 8 bytes"):
        BY_WORD["float"].layout("column 2", ColumnType.FLOAT, 8, b"\x08")
