"""Pages in the wrong place, where groups end at the borders of pages; and logs that rightly look so."""

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE, seal_page
from ibbmaster.kernel import loading
from ibbmaster.log import verify as verifying
from ibbmaster.log.fault import Totals
from ibbmaster.log.order_checks import NAMED_MAX
from ibbmaster.log.verify import verify
from tests.machinery.disk import MemoryDisk


@pytest.fixture(params=["with kernels", "without"], autouse=True)
def kernels_or_not(request, monkeypatch):
    monkeypatch.setattr(verifying, "kernels", loading.load if request.param == "with kernels" else lambda *parts: None)


@pytest.fixture
def paged_log(new_paged_log):
    """Two files of 20 pages, a state every eight."""
    return new_paged_log(size_pages=20, interval_pages=8)


def image(disk, page_no, file_no=0):
    return bytes(disk.files[f"binlog-{file_no:06d}.ibb"][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE])


def put(disk, page_no, page, file_no=0):
    disk.files[f"binlog-{file_no:06d}.ibb"][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE] = page


def faults(disk):
    found = list(verify(disk, Totals()))
    others = [MemoryDisk({name: bytes(data) for name, data in disk.files.items()}) for _ in range(2)]
    assert list(verify(disk, Totals(), others=others)) == found
    return found


def test_the_log_has_groups_that_end_at_page_borders(paged_log):
    assert faults(paged_log.disk) == []
    assert all(image(paged_log.disk, page_no)[0] in (0x41, 0x42) for page_no in range(1, 20))


@pytest.mark.parametrize(("wrong", "place"), [(3, 5), (5, 3), (4, 6), (12, 10)], ids=lambda page_no: f"page {page_no}")
def test_a_page_that_was_written_to_the_wrong_place_is_damage(paged_log, wrong, place):
    """Four groups come twice, four never; the next state is that of the groups in front of it."""
    put(paged_log.disk, place, image(paged_log.disk, wrong))
    found = faults(paged_log.disk)
    assert found
    assert all(fault.is_damage for fault in found)
    lines = [str(fault) for fault in found if "once more" in str(fault)]
    assert lines
    assert any(f"page {wrong}" in line and f"page {place}" in line for line in lines), lines


def test_two_pages_that_changed_places_are_named_with_both_places_and_are_a_note_as_nothing_proves_it(paged_log):
    four, five = image(paged_log.disk, 4), image(paged_log.disk, 5)
    put(paged_log.disk, 4, five)
    put(paged_log.disk, 5, four)
    (fault,) = faults(paged_log.disk)
    assert not fault.is_damage
    assert "comes behind number" in str(fault)
    assert "page 5 offset 0" in str(fault)
    assert "at binlog-000000.ibb page 4 offset" in str(fault)


def test_a_page_before_a_state_record_is_damage_by_the_state(paged_log):
    put(paged_log.disk, 7, image(paged_log.disk, 6))
    found = [str(fault) for fault in faults(paged_log.disk) if fault.is_damage]
    assert any("page 8 offset 0: differential GTID state is" in line for line in found)
    assert any("page 7 offset 0: group" in line and "comes behind number" in line for line in found)


@pytest.mark.parametrize(("wrong", "place", "said"), [(8, 5, "where none is due"), (5, 8, "that is due on this page")])
def test_a_page_with_a_state_record_where_none_is_due_and_the_other_way_round_is_damage(paged_log, wrong, place, said):
    put(paged_log.disk, place, image(paged_log.disk, wrong))
    found = [str(fault) for fault in faults(paged_log.disk) if fault.is_damage]
    assert any(said in line and f"page {place} offset 0" in line for line in found), found


def test_a_page_of_another_file_is_damage_by_the_states(paged_log):
    put(paged_log.disk, 7, image(paged_log.disk, 7, file_no=1))
    assert any(fault.is_damage for fault in faults(paged_log.disk))


def test_an_older_image_of_a_page_is_damage(paged_log):
    page = bytearray(image(paged_log.disk, 5))
    page[page.index(b"\x41", 9000) :] = bytes(PAGE_SIZE - page.index(b"\x41", 9000))
    seal_page(page)
    put(paged_log.disk, 5, page)
    assert any("data behind its end" in str(fault) and fault.is_damage for fault in faults(paged_log.disk))


def test_a_log_of_a_primary_that_lets_numbers_go_back_is_sound(new_log, event):
    log = new_log(size_pages=8, interval_pages=2)
    for seq_no in (1, 2, 2, 1, 5, 3, 4, 5, 5, 6):
        log.commit(f"0-1-{seq_no}", event(5000))
        log.commit(f"3-{seq_no % 2 + 1}-{seq_no}", event(50))
    found = faults(log.disk)
    assert found
    assert not any(fault.is_damage for fault in found)
    assert all("a primary without gtid_strict_mode logs so, too" in str(fault) for fault in found)
    assert [str(fault).split()[7] for fault in found if "group 0-1-" in str(fault)] == [
        "0-1-2",
        "0-1-1",
        "0-1-3",
        "0-1-5",
    ]


def test_many_numbers_that_go_back_are_named_and_the_rest_counted(new_log, event):
    log = new_log(size_pages=100, interval_pages=0)
    for _ in range(30):
        for seq_no in (3, 2, 1):
            log.commit(f"0-1-{seq_no}", event(30))
    found = [str(fault) for fault in faults(log.disk)]
    assert len(found) == NAMED_MAX + 1
    assert found[-1] == "note: binlog-000000.ibb: 40 more groups come behind higher numbers"


def test_numbers_of_different_servers_and_domains_are_no_neighbours(new_log, event):
    log = new_log()
    for gtid in ("0-1-5", "0-2-3", "1-1-1", "0-2-4", "0-1-6", "1-2-1"):
        log.commit(gtid, event(50))
    assert faults(log.disk) == []
    assert log.groups[1][0] == Gtid.parse("0-2-3")
