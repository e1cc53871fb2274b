"""An archive is a log like any other; what is not as its manifest says is refused by name."""

import hashlib
import json
from contextlib import closing
from dataclasses import asdict, replace

import pytest

import ibbmaster
from ibbmaster.errors import PositionPurgedError, StoreError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.archive import archived as reading
from ibbmaster.logs.archive import manifest
from ibbmaster.logs.archive.archived import ArchivedBinlog, SegmentStore
from ibbmaster.logs.archive.archiver import Archiver
from ibbmaster.logs.archive.keeping import expect_head
from ibbmaster.logs.archive.place import archive_at
from ibbmaster.logs.archive.upkeep import prune
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.log.time_search import find_time
from ibbmaster.replication.dump.profile import PROFILES
from tests.machinery.objects import MemoryObjects

FIRST_TIME = 1_800_000_000
MANY = 10_000


def append(log, first, end):
    for number in range(first, end):
        log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number})", timestamp=FIRST_TIME + 10 * number)


def archive(log, objects):
    Archiver(log.engine, objects, PROFILES["classic-11.8"], segment_bytes=1000).run(until_end=True)


@pytest.fixture
def objects(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "PAGE_ENTRIES", 3)
    monkeypatch.setattr(reading, "LOOK_S", 0.0)
    objects = MemoryObjects()
    with ibbmaster.create(tmp_path / "log", durability="write") as log:
        append(log, 1, 51)
        log.sync()
        archive(log, objects)
    return objects


def opened(objects):
    return ArchivedBinlog(SegmentStore(objects, expect_head(objects)[0]))


def segments(objects):
    return sorted(name for name in objects.objects if manifest.segment_number(name))


def gtids(log, plan):
    return [group.gtid.seq_no for group in groups_from(log, plan) if group.gtid is not None]


def test_each_position_is_found_in_its_segment(objects):
    log = opened(objects)
    for number in range(51):
        plan = log.seek(GtidPosition.parse(f"0-1-{number}" if number else ""))
        found = gtids(log, plan)
        assert found[-1] == 50
        state = plan.state.seq_no(0, 1) or 0
        assert found[0] == state + 1 <= number + 1
        assert number < 50 or found[0] > 40


def test_each_time_is_found(objects):
    log = opened(objects)
    for number in range(1, 51):
        for time in (FIRST_TIME + 10 * number, FIRST_TIME + 10 * number - 9):
            found = find_time(log, time)
            assert (found.group.seq_no, str(found.state)) == (number, f"0-1-{number - 1}" if number > 1 else "")
    assert find_time(log, FIRST_TIME + 501).group is None
    assert find_time(log, 0).first == FIRST_TIME + 10


def test_a_segment_that_comes_is_read(objects, tmp_path):
    log = opened(objects)
    with closing(log.stored_groups(log.start_of_file())) as groups:
        while groups.next_group() is not None:
            pass
        assert not log.wait_for_growth(0)
        with ibbmaster.open(tmp_path / "log", writable=True) as source:
            append(source, 51, 53)
            archive(source, objects)
        assert log.wait_for_growth(60)
        found = [group.gtid.seq_no for group in iter(groups.next_group, None) if group.gtid is not None]
    assert found == [51, 52]


def read_all(groups, found):
    with closing(groups):
        for group in iter(groups.next_group, None):
            found += [str(group.gtid)] if group.gtid is not None else []


def damaged(data):
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda objects, name, other: objects.pop(name), "the manifest of the archive names it, and it is not there"),
        (lambda objects, name, other: objects.update({name: damaged(objects[name])}), "it is not the object that was"),
        (lambda objects, name, other: objects.update({name: objects[other]}), "its SHA-256 is [0-9a-f]{64}, and the m"),
        (lambda objects, name, other: objects.update({name: b""}), "it is not the object that was archived"),
    ],
    ids=["missing", "a changed byte", "another segment", "empty"],
)
def test_a_changed_or_missing_segment_is_refused_by_name(objects, change, problem):
    name, other = segments(objects)[3:5]
    change(objects.objects, name, other)
    log = opened(objects)
    entry = log.store.entry(4)
    for groups in (log.groups(log.start_of_file()), log.stored_groups(log.start_of_file())):
        found: list[str] = []
        with pytest.raises(StoreError, match=f"^memory/{name}: .*{problem}"):
            read_all(groups, found)
        assert found[-1] == entry.before


def with_entry(objects, number, **changes):
    """Change what the manifest says of a segment, as someone might who can write it."""
    head, _ = expect_head(objects)
    entries = tuple(replace(one, **changes) if one.number == number else one for one in head.entries)
    objects.objects[manifest.HEAD_NAME] = manifest.encode_head(replace(head, entries=entries))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"before": "0-1-3"}, "it does not begin at '0-1-3', as the manifest says"),
        ({"size": 10}, "it has more than 10 bytes"),
    ],
)
def test_a_manifest_that_says_what_a_segment_is_not_is_refused(objects, changes, problem):
    number = expect_head(objects)[0].last.number
    with_entry(objects, number, **changes)
    log = opened(objects)
    with pytest.raises(StoreError, match=problem):
        gtids(log, log.start_of_file(number))


def test_a_segment_that_holds_other_bytes_than_zstd_is_refused(objects):
    number, name = expect_head(objects)[0].last.number, expect_head(objects)[0].last.name
    for data, problem in (
        (b"no zstd", "damaged zstd data"),
        (objects.objects[name][:-9], "the zstd data is cut short"),
        (objects.objects[name] + b"x", "bytes follow the zstd data"),
    ):
        with_entry(objects, number, sha256=hashlib.sha256(data).hexdigest())
        before, objects.objects[name] = objects.objects[name], data
        with pytest.raises(StoreError, match=f"{name}: {problem}"):
            gtids(opened(objects), opened(objects).start_of_file(number))
        objects.objects[name] = before


def test_a_page_that_is_not_what_the_head_says_is_refused_by_name(objects):
    objects.objects["page-00000001.json"] = damaged(objects.objects["page-00000001.json"])
    with pytest.raises(StoreError, match=r"memory/page-00000001\.json: its SHA-256 is"):
        gtids(opened(objects), opened(objects).start_of_file())
    del objects.objects["page-00000001.json"]
    with pytest.raises(
        StoreError, match=r"memory/page-00000001\.json: the head of the archive names it, and it is not"
    ):
        opened(objects).files()


def test_what_is_pruned_while_it_is_read_is_purged(objects):
    log = opened(objects)
    with closing(log.stored_groups(log.start_of_file())) as groups:
        for _ in range(4):
            groups.next_group()
        prune(objects, PurgeRequest(total_bytes=0), {})
        with pytest.raises(PositionPurgedError):
            read_all(groups, [])
    assert gtids(log, log.start_of_file()) == [46, 47, 48, 49, 50]
    with pytest.raises(PositionPurgedError, match=r"the replica has 0-1-3, archive\.0000\d\d begins after 0-1-45"):
        log.seek(GtidPosition.parse("0-1-3"))


def test_another_archive_in_its_place_is_a_reset(objects, tmp_path):
    log = opened(objects)
    assert log.reset_count == 0
    with ibbmaster.create(tmp_path / "other") as other:
        append(other, 2, 60)
        there = MemoryObjects()
        archive(other, there)
    objects.objects = {**objects.objects, manifest.HEAD_NAME: there.objects[manifest.HEAD_NAME]}
    log.state()
    assert log.reset_count == 1


@pytest.fixture(scope="module")
def many():
    """An archive of ten thousand segments, of which only one is there."""
    objects = MemoryObjects()
    head = manifest.Head(server_version="11.8.6-MariaDB-log", begin="")
    chain = head.end_chain
    for number in range(1, MANY + 1):
        sha256 = hashlib.sha256(str(number).encode()).hexdigest()
        chain = manifest.chained(chain, sha256)
        first, last = 10 * number - 9, 10 * number
        entry = manifest.Segment(
            number=number,
            name=f"{number:08}_0-1-{last}.zst",
            before=f"0-1-{first - 1}" if number > 1 else "",
            after=f"0-1-{last}",
            first_time=FIRST_TIME + first,
            last_time=FIRST_TIME + last,
            groups=10,
            bytes=1000,
            size=3000,
            sha256=sha256,
            chain=chain,
        )
        head = head.with_segment(entry)
        if (sealed := head.sealed()) is not None:
            head, page, objects.objects[page.name] = sealed
    objects.objects[manifest.HEAD_NAME] = manifest.encode_head(head)
    return objects


def test_ten_thousand_segments_have_a_small_head(many):
    assert len(many.objects[manifest.HEAD_NAME]) < 250_000
    assert len(json.loads(many.objects[manifest.HEAD_NAME])["pages"]) == MANY // manifest.PAGE_ENTRIES - 1


@pytest.fixture
def many_places(many, object_store, tmp_path, monkeypatch):
    """The same archive in a real object store, with segment 1234."""
    url = object_store.new_place()
    with ibbmaster.create(tmp_path / "log", state="0-1-12330") as log:
        for number in range(12331, 12341):
            log.append(f"0-1-{number}", f"INSERT INTO t VALUES ({number})", timestamp=FIRST_TIME + number)
        there = MemoryObjects()
        Archiver(log.engine, there, PROFILES["classic-11.8"]).run(until_end=True)
    [made] = expect_head(there)[0].entries
    head, _ = expect_head(many)
    place = next(page for page in head.pages if page.number <= 1234 < page.number + manifest.PAGE_ENTRIES)
    entries = [
        replace(made, number=1234, name=one.name, chain=one.chain) if one.number == 1234 else one
        for one in manifest.decode_page(many.objects[place.name], place, "")
    ]
    page = json.dumps({"entries": [asdict(one) for one in entries]}).encode()
    changed = replace(place, sha256=hashlib.sha256(page).hexdigest())
    pages = tuple(changed if one is place else one for one in head.pages)
    object_store.put(f"{url}/{manifest.HEAD_NAME}", manifest.encode_head(replace(head, pages=pages)))
    object_store.put(f"{url}/{place.name}", page)
    object_store.put(f"{url}/{entries[1233 - place.number + 1].name}", there.objects[made.name])
    object_store.requests.clear()
    return url


def test_a_position_among_ten_thousand_segments_takes_three_requests(many_places, object_store):
    with ibbmaster.open(many_places) as log:
        assert log.seek("0-1-12335").file_name == "archive.001234"
        assert next(log.groups(after="0-1-12335")).gtid.seq_no == 12336
    assert [request.method for request in object_store.requests] == ["GET"] * 3


def test_a_time_among_ten_thousand_segments_takes_three_requests(many_places, object_store):
    with ibbmaster.open(many_places) as log:
        found = find_time(log.engine, FIRST_TIME + 12337)
    assert (str(found.group), str(found.state)) == ("0-1-12337", "0-1-12336")
    assert [request.method for request in object_store.requests] == ["GET"] * 3


def test_a_place_without_an_archive_is_none(tmp_path):
    assert archive_at(tmp_path) is None
    assert archive_at(tmp_path / ("x" * 300)) is None  # who reads a log there says what is wrong
