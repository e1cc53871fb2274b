"""Nobody appends behind a hole: the active file is read before."""

import pytest

from ibbmaster.errors import FormatError
from ibbmaster.ibb.page import PAGE_SIZE, seal_page
from ibbmaster.log.unbroken import check_unbroken

NAME = "binlog-000000.ibb"


@pytest.fixture
def log(new_log, event):
    """One file, whose first twelve pages are full; some of them end with zeros of an event."""
    log, seq_no = new_log(size_pages=40, interval_pages=4), 0
    while log.appender.page_no < 13:
        seq_no += 1
        log.commit(f"0-1-{seq_no}", event(3000 + seq_no, fill=seq_no % 2))
    return log


def damaged(log, page_no, change):
    page = log.disk.files[NAME][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE]
    log.disk.files[NAME][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = change(page)
    return log


def older(page):
    """The page as it was when it had its first chunk only."""
    end = 3 + int.from_bytes(page[1:3], "little")
    image = bytearray(page[:end]) + bytes(PAGE_SIZE - end)
    seal_page(image)
    return image


def flipped(page):
    page[9000] ^= 4
    return page


DAMAGE = {"blank": lambda page: bytes(PAGE_SIZE), "older": older, "flipped": flipped}


def test_a_sound_file_passes(log):
    check_unbroken(log.disk, log.appender.end)


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("page_no", [1, 2, 4, 7, 12])
def test_a_page_before_the_end_that_is_blank_older_or_damaged_is_named(log, change, page_no):
    with pytest.raises(FormatError, match=rf"binlog-000000\.ibb page {page_no} offset"):
        check_unbroken(damaged(log, page_no, change).disk, log.appender.end)


def test_a_header_that_was_lost_is_named(log):
    with pytest.raises(FormatError, match=r"binlog-000000\.ibb page 0 offset"):
        check_unbroken(damaged(log, 0, flipped).disk, log.appender.end)


def test_a_file_that_ends_before_the_log_does_is_named(log):
    del log.disk.files[NAME][6 * PAGE_SIZE :]
    with pytest.raises(FormatError, match="page 6 offset 0: nothing is written here, but the log reaches to"):
        check_unbroken(log.disk, log.appender.end)
