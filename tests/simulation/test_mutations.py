"""Damaged logs: kernels and reference give the same groups and the same faults, and never what was not written.

`pytest tests/simulation/test_mutations.py --mutations 5000` for a long run; a failure prints its seed.
"""

import random

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel import loading
from ibbmaster.logs.log import verify as verifying
from ibbmaster.logs.log.directory import BinlogDirectory
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.verify import verify
from ibbmaster.primary.streaming import shared
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.ibb.page import PAGE_SIZE, seal_page
from tests.machinery.disk import MemoryDisk
from tests.machinery.random_log import random_log
from tests.machinery.simulated_disk import SimulatedDisk

LOGS = 8
OF_PAGES = 2  # the first kind of damage that makes no page another one


@pytest.fixture(scope="module")
def logs():
    found = []
    for seed in range(LOGS):
        disk = SimulatedDisk()
        random_log(seed, disk).close()
        found.append({name: bytes(data) for name, data in disk.files().items() if name.endswith(".ibb")})
    return found


def page_of(files, name, page_no):
    return files[name][page_no * PAGE_SIZE : (page_no + 1) * PAGE_SIZE]


def with_page(files, name, page_no, page):
    data = files[name]
    return {**files, name: data[: page_no * PAGE_SIZE] + bytes(page) + data[(page_no + 1) * PAGE_SIZE :]}


def older_image(page, rng):
    """What a page may have been when it had less: its first chunks, and zeros."""
    image, offset, ends = bytearray(page), 0, [0]
    while offset <= PAGE_SIZE - 8 and page[offset] not in (0, 0xFF):
        offset += 3 + int.from_bytes(page[offset + 1 : offset + 3], "little")
        ends.append(min(offset, PAGE_SIZE - 4))
    end = rng.choice(ends)
    image[end:] = bytes(PAGE_SIZE - end)
    if end:
        seal_page(image)
    return bytes(image)


def mutated(files, rng, *, first_kind=0):
    for _ in range(rng.choice((1, 1, 1, 2))):
        names = [name for name, data in files.items() if data.strip(b"\0")]
        name = rng.choice(names)
        page_no = rng.randrange(1, len(files[name]) // PAGE_SIZE)
        page = page_of(files, name, page_no)
        other_name = rng.choice(names)
        other_no = rng.randrange(1, len(files[other_name]) // PAGE_SIZE)
        match rng.randrange(first_kind, 7):
            case 0 | 1:
                changed = bytearray(page)
                for _ in range(rng.randint(1, 3)):
                    changed[rng.randrange(PAGE_SIZE - 4)] ^= 1 << rng.randrange(8)
                if rng.random() < 0.8:
                    seal_page(changed)
                files = with_page(files, name, page_no, changed)
            case 2:
                files = with_page(files, name, page_no, page_of(files, other_name, other_no))
            case 3:
                other = page_of(files, other_name, other_no)
                files = with_page(with_page(files, other_name, other_no, page), name, page_no, other)
            case 4:
                files = with_page(files, name, page_no, older_image(page, rng))
            case 5:
                files = with_page(files, name, page_no, bytes(PAGE_SIZE))
            case 6:
                files = {**files, name: files[name][: rng.randrange(1, len(files[name]) // PAGE_SIZE + 1) * PAGE_SIZE]}
    return files


@pytest.fixture
def served(dumped):
    def read(files):
        directory = BinlogDirectory(MemoryDisk(files))
        try:
            return dumped(directory, directory.start_of_file().state.position())
        except IbbMasterError as error:
            return [], str(error)

    return read


def test_kernels_and_reference_say_the_same_of_damaged_logs_and_what_they_serve_is_its_beginning_or_told(
    served, logs, monkeypatch, request
):
    """But for bits, the end, and pages inside the data of large groups, of which nothing tells where they belong."""
    seed = request.config.getoption("--mutation-seed")
    seed = random.randrange(2**32) if seed is None else seed
    for number in range(request.config.getoption("--mutations")):
        rng = random.Random(seed + number)
        sound, first_kind = rng.choice(logs), rng.choice((0, OF_PAGES))
        files = mutated(sound, rng, first_kind=first_kind)
        told, dumped = [], []
        for ready in (loading.load, lambda: None):
            monkeypatch.setattr(verifying, "kernels", ready)
            monkeypatch.setattr(shared, "kernels", ready)
            totals = Totals()
            told.append((list(verify(MemoryDisk(files), totals)), totals))
            dumped.append(served(files))
        replay = f"--mutations 1 --mutation-seed {seed + number}"
        assert told[0] == told[1], replay
        assert fault_of(dumped[0][1]) == fault_of(dumped[1][1]), replay
        fewer, more = sorted((dumped[0][0], dumped[1][0]), key=len)
        assert fewer == more[: len(fewer)], replay
        assert len(fewer) == len(more) or dumped[0][1] is not None, replay  # a block is refused as a whole
        if first_kind == OF_PAGES and dumped[0][1] is None:
            found, whole = gtids(more), gtids(served(sound)[0])
            assert found == whole[: len(found)] or told[0][0], replay


def fault_of(error):
    """The text of an error; of the data of a large group, read in another order by each, only that it is damaged."""
    if error is not None and any(words in error for words in ("inside an event", "out-of-band", "an event of")):
        return "the data of a group"
    return error


def gtids(events):
    return [(event[5:9], event[19:31]) for event in events if event[4] == EventType.GTID]
