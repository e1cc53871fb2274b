"""What an archive says of itself, every fault of it, and what a prune takes away."""

from dataclasses import replace

import pytest

import ibbmaster
from ibbmaster.errors import PositionError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.archive import manifest
from ibbmaster.logs.archive.archived import ArchivedBinlog, SegmentStore
from ibbmaster.logs.archive.archiver import Archiver
from ibbmaster.logs.archive.keeping import all_segments, expect_head
from ibbmaster.logs.archive.upkeep import faults, prune, summary
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.replication.dump.profile import PROFILES
from tests.machinery.objects import KilledError, MemoryObjects

FIRST_TIME = 1_800_000_000
ALL = PurgeRequest(total_bytes=0)


@pytest.fixture
def objects(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "PAGE_ENTRIES", 3)
    objects = MemoryObjects()
    with ibbmaster.create(tmp_path / "log", durability="write") as log:
        for number in range(1, 51):
            log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number})", timestamp=FIRST_TIME + number)
        log.sync()
        Archiver(log.engine, objects, PROFILES["classic-11.8"], segment_bytes=1000).run(until_end=True)
    return objects


def kept(objects):
    return list(all_segments(objects, expect_head(objects)[0]))


def all_faults(objects):
    return [str(fault) for fault in faults(objects, Totals()) if fault.is_damage]


def notes(objects):
    return [str(fault) for fault in faults(objects, Totals()) if not fault.is_damage]


def gtids(objects):
    log = ArchivedBinlog(SegmentStore(objects, expect_head(objects)[0]))
    return [group.gtid.seq_no for group in groups_from(log, log.start_of_file()) if group.gtid is not None]


def test_an_archive_says_what_it_holds(objects):
    found = summary(objects)
    assert found[:2] == (len(kept(objects)), 50)
    assert found.bytes == sum(len(data) for name, data in objects.objects.items() if manifest.segment_number(name))
    assert (found.before, found.after, found.first_time, found.last_time) == (
        "",
        "0-1-50",
        FIRST_TIME + 1,
        FIRST_TIME + 50,
    )


def test_the_recoverable_time_is_that_of_the_last_commit_or_of_a_look_that_found_all_archived(objects):
    head, _ = expect_head(objects)
    for checked_at, time in (
        (None, FIRST_TIME + 50),
        (FIRST_TIME, FIRST_TIME + 50),
        (FIRST_TIME + 99, FIRST_TIME + 99),
    ):
        objects.objects[manifest.HEAD_NAME] = manifest.encode_head(replace(head, checked_at=checked_at))
        assert summary(objects).last_recoverable_time == time


def test_an_archive_of_an_origin_only_is_checked(tmp_path):
    for is_origin in (True, False):
        objects = MemoryObjects()
        with ibbmaster.create(tmp_path / str(is_origin)) as log:
            Archiver(log.engine, objects, PROFILES["classic-11.8"], is_origin=is_origin).run(until_end=True)
        assert (expect_head(objects)[0].checked_at is not None) == is_origin
        assert summary(objects)[:3] == (0, 0, 0)


def test_a_sound_archive_has_no_faults(objects):
    totals = Totals()
    assert list(faults(objects, totals)) == []
    assert (totals.files, totals.groups) == (len(kept(objects)), 50)


def change_byte(data):
    return data[:50] + bytes([data[50] ^ 1]) + data[51:]


def test_every_object_that_is_wrong_is_named(objects):
    names = [one.name for one in kept(objects)]
    del objects.objects[names[1]]
    objects.objects[names[3]] = change_byte(objects.objects[names[3]])
    objects.objects[names[-1]] += b"more"
    found = all_faults(objects)
    assert any(names[1] in text and text.endswith("it is not there") for text in found)
    assert any(names[3] in text and "it is not the object that was archived" in text for text in found)
    assert any(names[-1] in text and "bytes, and the manifest says" in text for text in found)
    assert not any(name in text for text in found for name in names if name not in (names[1], names[3], names[-1]))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"chain": "0" * 64}, "its chain is not that of the segments before it"),
        ({"before": "0-1-3"}, "begins at '0-1-3', the one before ends at "),
        ({"after": "0-1-99"}, "the newest segment ends at '0-1-50', and the manifest says '0-1-99'"),
    ],
)
def test_a_manifest_that_does_not_join_is_a_fault(objects, changes, problem):
    head, _ = expect_head(objects)
    entries = (*head.entries[:-1], replace(head.entries[-1], **changes))
    objects.objects[manifest.HEAD_NAME] = manifest.encode_head(replace(head, entries=entries))
    assert any(problem in text for text in all_faults(objects))


def test_a_page_that_is_missing_is_a_fault(objects):
    del objects.objects["page-00000004.json"]
    found = all_faults(objects)
    assert found[0] == "memory/page-00000004.json: the head of the archive names it, and it is not there"
    assert any(text.endswith("the manifest has a gap") for text in found)


def test_a_place_without_an_archive_is_refused(tmp_path):
    for ask in (summary, lambda objects: list(faults(objects, Totals())), lambda objects: prune(objects, ALL, {})):
        with pytest.raises(StoreError, match=r"memory: there is no archive here \(archive\.json is missing\)"):
            ask(MemoryObjects())


def test_a_prune_keeps_the_newest_and_what_it_was_asked_to(objects):
    before = kept(objects)
    found = prune(objects, PurgeRequest(before=FIRST_TIME + 20), {})
    left = kept(objects)
    assert left[0].last_time >= FIRST_TIME + 20 > before[found.segments - 1].last_time
    assert (found.segments, found.strays, found.first) == (len(before) - len(left), 0, left[0].name)
    assert all_faults(objects) == notes(objects) == []
    assert prune(objects, ALL, {}).segments == len(left) - 1
    assert gtids(objects) == list(range(50 - kept(objects)[0].groups + 1, 51))
    assert {name for name in objects.objects if name.endswith(".zst")} == {kept(objects)[0].name}
    assert all_faults(objects) == []


def test_a_dry_run_changes_nothing(objects):
    before = dict(objects.objects)
    assert prune(objects, ALL, {}, is_dry=True).segments == len(kept(objects)) - 1
    assert objects.objects == before


def test_nothing_that_a_consumer_lacks_is_pruned(objects):
    consumers = {"reports": GtidPosition.parse("0-1-30"), "search": GtidPosition.parse("0-1-12")}
    found = prune(objects, ALL, consumers)
    assert found.kept_for == "search"
    assert gtids(objects)[0] <= 13
    assert kept(objects)[1].before > "0-1-12"
    with pytest.raises(PositionError, match="GTID 0-1-99 is not in this log"):
        prune(objects, ALL, {"typo": GtidPosition.parse("0-1-99")})
    assert prune(objects, ALL, {"new": GtidPosition()}).segments == 0


def test_a_killed_prune_is_finished_by_the_next_one(objects, monkeypatch):
    whole = dict(objects.objects), dict(objects._versions)
    for count in range(1, 100):
        objects.objects, objects._versions = dict(whole[0]), dict(whole[1])
        objects.fails_at, objects.kills = len(objects.calls) + count, True
        try:
            prune(objects, PurgeRequest(before=FIRST_TIME + 30), {})
            break
        except KilledError:
            assert all_faults(objects) == []
            prune(objects, PurgeRequest(before=FIRST_TIME + 30), {})
            assert all_faults(objects) == notes(objects) == []
            assert gtids(objects)[0] <= 31
    print(f"{count - 1} kills")
    assert count > 8


def test_what_a_killed_writer_left_is_a_note_and_goes_but_not_what_may_still_be_named(objects):
    number = expect_head(objects)[0].next_number
    objects.objects["00000002_0-1-1000.zst"] = b"left"
    objects.objects[f"{number:08}_0-1-1000.zst"] = b"perhaps being put"
    objects.objects["README"] = b"of someone"
    assert notes(objects)[0].startswith("note: 2 objects, as 00000002_0-1-1000.zst, are not in the manifest")
    assert prune(objects, PurgeRequest(before=0.0), {}).strays == 1
    assert "00000002_0-1-1000.zst" not in objects.objects
    assert {f"{number:08}_0-1-1000.zst", "README"} <= objects.objects.keys()


def test_a_writer_goes_on_after_a_prune_meanwhile(objects, tmp_path):
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        archiver = Archiver(log.engine, objects, PROFILES["classic-11.8"])
        archiver._open()
        prune(objects, ALL, {})
        archiver._keeper.note_checked(FIRST_TIME + 1000)
    assert expect_head(objects)[0].checked_at == FIRST_TIME + 1000
    assert expect_head(objects)[0].first > 1
    assert all_faults(objects) == []
