"""What kernels take, as words."""

import pytest

from ibbmaster.kernel.fields import Framing
from ibbmaster.kernel.shapes import FieldShape, ItemShape, kernel_names, results_of, shapes_of, words_of


def test_what_is_said_of_a_kernel_is_read():
    pages, count, framing = shapes_of("frame_table")
    assert pages == ItemShape("uint8", 1)
    assert count is None
    assert isinstance(framing, FieldShape)
    assert framing.kind is Framing
    assert dict(zip(Framing._fields, framing.fields, strict=True))["table"] == ItemShape("int32", 2, is_record=True)


def test_a_number_is_a_word_and_an_array_one_more_than_it_has_dimensions():
    assert [words_of(shape) for shape in shapes_of("frame_table")] == [2, 1, 5 * 2 + 3 * 3]


@pytest.mark.parametrize(("kernel", "words"), [("renumber", 0), ("frame_table", 1), ("frame_bytes", 2)])
def test_what_is_given_back_is_counted(kernel, words):
    assert results_of(kernel) == words


@pytest.mark.parametrize("kernel", kernel_names())
def test_what_every_kernel_takes_and_gives_is_known(kernel):
    assert sum(map(words_of, shapes_of(kernel))) > 2
    assert results_of(kernel) in (0, 1, 2)
