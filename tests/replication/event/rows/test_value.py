import pytest

from ibbmaster.replication.event.rows.value import BadValueError, fixed, prefixed


def test_a_value_of_a_fixed_size_is_taken_where_it_stands():
    assert fixed(3, bytes.decode)(b"..abc.", 2) == ("abc", 5)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_value_behind_its_length_is_taken_where_it_stands(size):
    data = b".." + (3).to_bytes(size, "little") + b"abc."
    assert prefixed(size, bytes.decode)(data, 2) == ("abc", 5 + size)


def test_a_value_that_runs_over_the_end_is_an_error():
    for end in range(5):
        with pytest.raises(ValueError, match="a value of 5 bytes runs over the end of the rows"):
            fixed(5, bytes)(b"12345"[:end], 0)
        with pytest.raises(ValueError, match=r"a string of [0-5] bytes runs over the end of the rows"):
            prefixed(2, bytes)(b"\3\0abc"[:end], 0)


@pytest.mark.parametrize("read", [fixed(2, bytes.decode), prefixed(1, bytes.decode)])
def test_a_value_that_makes_none_says_its_bytes_and_where_it_ends(read):
    with pytest.raises(BadValueError, match="can't decode") as caught:
        read(b"\2\xff\xff.", 0)
    assert caught.value.data in (b"\2\xff", b"\xff\xff")
    assert caught.value.end == (2 if caught.value.data[0] == 2 else 3)


def test_a_number_too_large_for_python_is_a_bad_value_too():
    with pytest.raises(BadValueError, match="too big"):
        fixed(4, lambda data: int(data).to_bytes(1))(b"1000", 0)
