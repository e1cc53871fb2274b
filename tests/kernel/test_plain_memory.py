from ibbmaster.kernel.plain_memory import NOTHING, RowTable, number_rows, rows_in


def test_a_table_gives_the_rows_that_a_kernel_has_left_in_it():
    table = RowTable(3, 2)
    for place, number in enumerate([1, 2, 3, -4]):
        table.memory[divmod(place, 2)] = number
    assert table.rows(2) == [(1, 2), (3, -4)]
    assert table.rows(0) == []


def test_numbers_without_a_sign_keep_their_bits():
    assert rows_in(number_rows([(1, 2**64 - 1), (2**63, 0)], 2), 2) == [(1, -1), (-(2**63), 0)]


def test_no_rows_are_nothing():
    assert number_rows([], 3) is NOTHING
