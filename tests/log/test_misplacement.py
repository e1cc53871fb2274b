"""A stretch with a page in the wrong place is refused when it is served, as far as states or copies prove it."""

import pytest

from ibbmaster.errors import RecordError
from ibbmaster.event.types import EventType
from ibbmaster.gtid import GtidPosition
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel import loading
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.misplacement import MisplacementCheck
from ibbmaster.streaming import shared


@pytest.fixture
def paged_log(new_paged_log):
    """Two files of 80 pages."""
    return new_paged_log(size_pages=80, interval_pages=16)


def copy_page(log, wrong, place, file_no=0):
    data = log.disk.files[f"binlog-{file_no:06d}.ibb"]
    data[place * PAGE_SIZE : (place + 1) * PAGE_SIZE] = data[wrong * PAGE_SIZE : (wrong + 1) * PAGE_SIZE]


def first_on(log, page_no):
    """The number of the first group of a page in file 0."""
    return (page_no - 1) * 4 + 1


@pytest.fixture
def served(dumped):
    """The sequence numbers a replica gets, and why it gets no more."""

    def read(directory):
        events, error = dumped(directory, GtidPosition())
        return [int.from_bytes(event[19:27], "little") for event in events if event[4] == EventType.GTID], error

    return read


@pytest.mark.parametrize("has_kernels", [True, False], ids=["with kernels", "without"])
@pytest.mark.parametrize(("wrong", "place"), [(3, 5), (20, 33), (62, 63), (63, 64), (64, 65), (70, 69)])
def test_no_group_goes_out_twice_where_a_page_is_in_the_wrong_place(
    served, paged_log, monkeypatch, has_kernels, wrong, place
):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda *parts: None)
    copy_page(paged_log, wrong, place)
    numbers, error = served(BinlogDirectory(paged_log.disk))
    assert numbers == sorted(set(numbers))
    assert numbers[-1] < first_on(paged_log, max(wrong, place)) + 8
    assert "once more: a page was written to the wrong place" in error


@pytest.mark.parametrize("has_kernels", [True, False], ids=["with kernels", "without"])
def test_numbers_that_rightly_go_back_are_served(served, new_log, event, monkeypatch, has_kernels):
    monkeypatch.setattr(shared, "kernels", loading.load if has_kernels else lambda *parts: None)
    log = new_log(size_pages=20, interval_pages=4)
    fed = [1, 2, 2, 1, 5, *range(1, 60), 3, 3, 7]
    for seq_no in fed:
        log.commit(f"0-1-{seq_no}", event(3000))
    assert served(BinlogDirectory(log.disk)) == (fed, None)


def test_a_file_whose_numbers_rightly_go_back_is_verified_once(new_log, event):
    log = new_log(size_pages=20, interval_pages=4)
    for seq_no in (*range(1, 20), *range(1, 40)):
        log.commit(f"0-1-{seq_no}", event(6000))
    directory = BinlogDirectory(log.disk)

    def pages_read():
        before = log.disk.pages_read
        reader = directory.groups(directory.seek(GtidPosition()))
        while reader.next_group() is not None:
            pass
        return log.disk.pages_read - before

    first, second = pages_read(), pages_read()
    assert second <= first - 20


def test_the_error_names_both_places(paged_log):
    copy_page(paged_log, 3, 5)
    directory = BinlogDirectory(paged_log.disk)
    reader = directory.groups(directory.seek(GtidPosition()))
    assert [reader.next_group().gtid.seq_no for _ in range(16)] == list(range(1, 17))
    message = r"page 5 offset 0: group 0-1-9 comes behind number 16 .* at binlog-000000\.ibb page 4 offset"
    for _ in range(2):  # and again when it is asked again
        with pytest.raises(RecordError, match=message):
            reader.next_group()


def test_a_sound_log_passed_over_group_by_group_is_never_verified(new_log, event, monkeypatch):
    log = new_log(size_pages=20, interval_pages=4)
    for seq_no in range(1, 40):
        log.commit(f"0-1-{seq_no}", event(6000))
    monkeypatch.setattr(MisplacementCheck, "check", lambda self, location: pytest.fail(f"verified at {location}"))
    directory = BinlogDirectory(log.disk)
    careful, passing = (directory.groups(directory.seek(GtidPosition())) for _ in range(2))
    count = 0
    while (group := careful.next_group()) is not None:
        if group.end.file_no != passing.position.file_no:
            break
        passing.continue_at(group.end, (group.gtid,), is_inside_record=False)
        count += 1
    assert count > 20
