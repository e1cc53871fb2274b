import pytest

from ibbmaster.errors import BusyError, DiskFullError, FailedError, StoreError
from ibbmaster.logs.store.failure_latch import FailureLatch

DISK, FULL = StoreError("no such device"), DiskFullError("full")
BUSY, INTERRUPT = BusyError("in use"), KeyboardInterrupt()


@pytest.mark.parametrize(
    ("where", "final"),
    [
        ("step", [DISK, INTERRUPT]),
        ("work", [DISK, INTERRUPT]),
        ("repeatable", [DISK, BUSY]),
        ("unrepeatable", [DISK, FULL, INTERRUPT]),
    ],
)
def test_an_error_goes_on_and_is_final_unless_nothing_was_changed(where, final):
    for error in (DISK, FULL, BUSY, INTERRUPT):
        latch = FailureLatch()
        with pytest.raises(type(error)), getattr(latch, where):
            raise error
        assert (latch.failure is not None) == (error in final), error
        caught = FailureLatch()
        getattr(caught, where).hear(error)
        assert str(caught.failure) == str(latch.failure), "as one that goes on"
        if error in final:
            with pytest.raises(FailedError, match="not written any further after an error"):
                latch.check()
        else:
            latch.check()


def test_work_does_not_begin_after_an_error():
    latch = FailureLatch()
    with latch.work:
        pass
    with pytest.raises(StoreError, match="no such device"), latch.work:
        raise DISK
    begun = []
    with pytest.raises(FailedError, match="no such device"), latch.work:
        begun.append(1)
    assert not begun


def test_the_first_error_stays_and_what_is_none_of_the_disk_is_named():
    latch = FailureLatch()
    latch.note(ValueError("odd"))
    latch.note(DISK)
    with pytest.raises(FailedError, match=r"interrupted by ValueError\('odd'\)"):
        latch.check()
