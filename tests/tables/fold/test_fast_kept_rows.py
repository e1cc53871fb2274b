import pytest

pytest.importorskip("numpy")

from ibbmaster.tables.fold import fast_kept_rows
from ibbmaster.tables.fold.fast_kept_rows import FastKeptRows
from ibbmaster.tables.fold.kept_rows import RowFile, WrongChangeError
from tests.tables.fold.test_kept_rows import (  # noqa: F401  # run here, too
    compare_with_a_model,
    test_a_dropped_table_has_no_rows,
    test_a_fork_goes_on_by_itself,
    test_compacting_leaves_out_rows_that_are_gone,
    test_rows_are_found_by_ranges_of_their_keys_in_order,
    test_rows_without_a_key_are_there_as_often_as_they_were_added,
)


@pytest.fixture
def kept() -> FastKeptRows:
    return FastKeptRows(RowFile())


@pytest.mark.parametrize("bytes_max", [fast_kept_rows.SORTED_BYTES_MAX, 100])
def test_whatever_happens_to_rows_every_question_has_the_answer_of_a_model(kept, bytes_max, monkeypatch) -> None:
    monkeypatch.setattr(fast_kept_rows, "SORTED_BYTES_MAX", bytes_max)
    monkeypatch.setattr(fast_kept_rows, "WAITING_MAX", 10)
    compare_with_a_model(kept, undoes=False)


def test_what_contradicts_the_rows_is_told_at_last_and_nothing_is_undone(kept) -> None:
    kept.insert(1, [b"a"], [1])
    kept.insert(1, [b"a"], [2])

    with pytest.raises(WrongChangeError):
        kept.conclude()
    with pytest.raises(WrongChangeError):
        kept.undo("s")
