"""What a server's GTID index says is what its file has; and where anything is wrong with it, it says nothing."""

from __future__ import annotations

import random
import shutil
import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from ibbmaster.classic import gtid_index
from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.gtid_index import SUFFIX, GtidIndex, find_place
from ibbmaster.classic.series import find_series
from ibbmaster.errors import ClassicFormatError
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid, GtidState

LOG = Path(__file__).parents[2] / "fixtures" / "gtid-index"
OTHER_SERVER = (77).to_bytes(4, "little")
MAGIC = b"\xfebin"
FILES = [LOG / "binlog.000002", LOG / "binlog.000003"]


def index_of(data, name="x.idx"):
    return GtidIndex(lambda offset, size: data[offset : offset + size], len(data), name)


def borders(path):
    """Where groups end in a file, and what it has up to there."""
    (file,) = find_series([path])
    with closing(ClassicFileReader(file)) as reader:
        logged = GtidState()
        for group in reader.groups():
            for _ in group.body:
                pass
            logged.log(group.gtid)
            yield group.gtid, reader.window.offset, logged.copy()


def place_in(path, is_wanted):
    (file,) = find_series([path])
    with closing(ClassicFileReader(file)) as reader:
        return find_place(reader, is_wanted)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_place_is_where_a_group_ends_and_has_what_was_logged_up_to_there(path):
    known = {offset: state for _, offset, state in borders(path)}
    passed: set[Gtid] = set()
    found = []
    for gtid, offset, _ in borders(path):
        passed.add(gtid)
        place = place_in(path, passed.issuperset)
        assert place.offset <= offset
        assert set(place.gtids) == set(known[place.offset])
        for domain_id in known[place.offset].domain_ids:  # what was logged last of a domain is last
            assert [one for one in place.gtids if one.domain_id == domain_id][-1] == known[place.offset].latest(
                domain_id
            )
        found.append(offset - place.offset)
    assert sum(distance == 0 for distance in found) > 0.8 * len(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_halving_finds_what_record_after_record_does(monkeypatch, path):
    data = path.with_name(f"{path.name}{SUFFIX}").read_bytes()
    before, passed, places, kept = set(index_of(data).first.gtids), set(), [], {}

    def is_wanted(gtids):
        return passed.issuperset(gtid for gtid in gtids if gtid not in before)

    for gtid, _, _ in borders(path):
        passed.add(gtid)
        halved = GtidIndex(lambda offset, size: data[offset : offset + size], len(data), "x", kept)
        places.append((set(passed), halved.find(is_wanted)))
    assert any(node.logged is not None and len(node.logged) > 2 for node in kept.values())
    monkeypatch.setattr(gtid_index, "LOGGED_MAX", 0)
    for passed, place in places:  # noqa: B007  # `is_wanted` reads it
        found = index_of(data).find(is_wanted)
        assert (found.offset, set(found.gtids)) == (place.offset, set(place.gtids))
    assert len({place.offset for _, place in places}) > 20


def begin_anew(path, *, past):
    """Write a file as if a server with another number had filled it, or its index, in place and of the same size."""
    data = bytearray(path.read_bytes())
    if path.suffix != SUFFIX:
        for at, size in events_of(data):
            if data[at + 4] == EventType.GTID:
                data[at + 5 : at + 9] = OTHER_SERVER
                data[at + size - 4 : at + size] = zlib.crc32(data[at : at + size - 4]).to_bytes(4, "little")
    else:
        for gtid in past:
            head = struct.pack("<I", gtid.domain_id), struct.pack("<Q", gtid.seq_no)
            data = data.replace(struct.pack("<I", gtid.server_id).join(head), OTHER_SERVER.join(head))
        for at in range(0, len(data), 256):
            data[at + 252 : at + 256] = zlib.crc32(data[at : at + 252]).to_bytes(4, "little")
    with path.open("r+b") as file:
        file.write(data)


def events_of(data):
    at = len(MAGIC)
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield at, size
        at += size


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("anew", [("", SUFFIX), ("",), (SUFFIX,)], ids=["both", "the file", "the index"])
def test_an_index_is_believed_of_its_own_file_only_and_not_of_what_was_there_before(tmp_path, path, anew):
    """The other one has groups of the same sizes at the same offsets: only who logged them differs."""
    for one in LOG.iterdir():
        shutil.copy(one, tmp_path)
    copy, past = tmp_path / path.name, [gtid for gtid, _, _ in borders(path)]
    numbers = [(gtid.domain_id, gtid.seq_no) for gtid in past]

    def places():
        wanted = [set(numbers[: count + 1]) for count in range(len(numbers) - 1)]
        return [
            place_in(copy, lambda gtids, one=one: one.issuperset((gtid.domain_id, gtid.seq_no) for gtid in gtids))
            for one in wanted
        ]

    known = places()
    assert len({place.offset for place in known}) > 20
    for suffix in anew:
        begin_anew(copy.with_name(f"{copy.name}{suffix}"), past=past)
    found = places()
    if len(anew) < 2:
        assert set(found) == {None}
    else:
        assert [place.offset for place in found] == [place.offset for place in known]
        assert not any(set(place.gtids) & set(past) for place in found)


def test_numbers_that_step_back_inside_a_record_are_not_halved_over():
    """A later number that is wanted does not say that all before it are."""
    numbers = [(), (50,), (3, 4), *((number,) for number in range(5, 12))]
    page = bytearray(struct.pack("<4sBBxxI", gtid_index.MAGIC, 1, 0, 512) + bytes([15, 0, 0, 0]))
    for offset, seq_nos in enumerate(numbers, start=1):
        page += struct.pack("<II", len(seq_nos) + 1, 1000 * offset)
        page += b"".join(struct.pack("<IIQ", 0, 1, seq_no) for seq_no in seq_nos)
    page = page.ljust(508, b"\0")
    page += zlib.crc32(page).to_bytes(4, "little")
    assert index_of(bytes(page)).find(lambda gtids: all(gtid.seq_no < 50 for gtid in gtids)).offset == 1000


def test_an_index_that_was_replaced_is_read_anew(tmp_path):
    for path in LOG.iterdir():
        shutil.copy(path, tmp_path)
    first, second = (tmp_path / path.name for path in FILES)
    assert place_in(first, lambda gtids: True) is not None
    index = first.with_name(f"{first.name}{SUFFIX}")
    index.write_bytes(second.with_name(f"{second.name}{SUFFIX}").read_bytes())
    assert place_in(first, lambda gtids: True) is None


def test_an_index_that_is_cut_or_has_a_flipped_bit_says_the_same_or_that_it_is_damaged():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    whole = FILES[0].with_name(f"{FILES[0].name}{SUFFIX}").read_bytes()
    refused = 0
    for number in range(400):
        limit = rng.randrange(60)
        data = bytearray(whole)
        if number % 2:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del data[rng.randrange(len(data)) :]
        wanted = index_of(whole).find(lambda gtids: all(gtid.seq_no <= limit for gtid in gtids))  # noqa: B023
        try:
            found = index_of(bytes(data)).find(lambda gtids: all(gtid.seq_no <= limit for gtid in gtids))  # noqa: B023
        except ClassicFormatError:
            refused += 1
        else:
            assert found == wanted or found.offset == wanted.offset
    assert refused > 200


def test_pages_that_point_in_circles_or_at_nothing_end_with_an_error():
    whole = FILES[0].with_name(f"{FILES[0].name}{SUFFIX}").read_bytes()
    size = 256

    for page in range(1, len(whole) // size):
        for number in (0, page + 1, len(whole) // size, 2**32 - 1):
            data = bytearray(whole)
            start = page * size
            if data[start] & 1:
                continue  # a leaf has no pages below it
            data[start + 4 : start + 8] = number.to_bytes(4, "little")
            data[start + size - 4 : start + size] = zlib.crc32(data[start : start + size - 4]).to_bytes(4, "little")
            try:
                index_of(bytes(data)).find(lambda gtids: False)
            except ClassicFormatError:
                continue
            assert page != len(whole) // size - 1  # the root is always looked at


OF_OTHERS = {
    "missing": lambda index, other, file: index.unlink(),
    "of another file": lambda index, other, file: shutil.copy(other, index),
    "cut": lambda index, other, file: index.write_bytes(index.read_bytes()[:-256]),
    "a folder": lambda index, other, file: (index.unlink(), index.mkdir()),
    "empty": lambda index, other, file: index.write_bytes(b""),
    "of a longer file": lambda index, other, file: file.write_bytes(file.read_bytes()[:9000]),
}


@pytest.mark.parametrize("change", OF_OTHERS.values(), ids=OF_OTHERS)
def test_an_index_that_does_not_fit_its_file_says_nothing(tmp_path, change):
    for path in LOG.iterdir():
        shutil.copy(path, tmp_path)
    first, second = (tmp_path / path.name for path in FILES)
    indexes = [path.with_name(f"{path.name}{SUFFIX}") for path in (first, second)]
    assert place_in(first, lambda gtids: True).offset > 20_000
    change(indexes[0], indexes[1], first)
    assert place_in(first, lambda gtids: True) is None


def test_a_place_inside_a_group_is_not_taken(tmp_path):
    for path in LOG.iterdir():
        shutil.copy(path, tmp_path)
    engine = ClassicBinlog([tmp_path])
    path = tmp_path / FILES[0].name
    place = place_in(path, lambda gtids: all(gtid.seq_no < 30 for gtid in gtids))
    data = path.read_bytes()
    path.write_bytes(data[: place.offset] + bytes(20) + data[place.offset :])  # all that follows has moved
    assert place_in(path, lambda gtids: all(gtid.seq_no < 30 for gtid in gtids)) is None
    assert engine.files()
