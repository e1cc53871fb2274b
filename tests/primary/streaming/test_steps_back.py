"""What a dump gets of a log whose numbers step back does not depend on the dumps before it.

A server without gtid_strict_mode, the default, logs any number: one that is below those before it, one that it has
logged before, or one of a server whose numbers stand elsewhere.
"""

import contextlib
import random
import zlib
from typing import Any

import pytest

import ibbmaster
from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.logs.player.repeated_log import RepeatedLog
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.options import staged
from ibbmaster.logs.stages.span import span_so_far
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.primary.streaming import block_cache
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.name_case import NameCase
from ibbmaster.storage.disk.local import RealDisk
from tests.logs.stages.test_filtering import rows, table_map
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.stores import new_store, open_files
from tests.primary.streaming.conftest import positions_of
from tests.tap import listen_in

PAGE_SIZE = 16384
SIZES = (0, 30, 300, 3000, PAGE_SIZE, 70_000)
SAMPLE = 16  # logs of each kind in a short run
QUESTIONS_MAX = 40  # of each log
SERVERS, DOMAINS = (1, 7, 54), (0, 1, 5)
CLASSIC = ("classic-10.11", "classic-11.8")
WAYS = [{}, {"is_pumped": True}, {"is_pumped": True, "is_clear": False}]


def random_gtids(rng):
    """Numbers of domains that grow, but for steps back: of one group, or from there on."""
    domains, servers = rng.sample(DOMAINS, rng.randrange(1, 4)), rng.sample(SERVERS, rng.randrange(1, 4))
    numbers, gtids, server = dict.fromkeys(domains, 0), [], servers[0]
    back, change = rng.choice([0.0, 0.1, 0.3, 0.5]), rng.choice([0.1, 0.5])
    for _ in range(rng.choice([8, 20, 60])):
        domain = rng.choice(domains)
        server = rng.choice(servers) if rng.random() < change else server
        before = numbers[domain]
        numbers[domain] += rng.choice([1, 1, 1, 4])
        number = rng.randrange(1, before + 1) if before and rng.random() < back else numbers[domain]
        if number <= before and rng.random() < 0.2:
            numbers[domain] = number
        gtids.append(Gtid(domain_id=domain, server_id=server, seq_no=number))
    return gtids


def write(directory, gtids, rng):
    options = StoreOptions(
        durability=Durability.LATER,
        max_file_bytes=rng.choice([8, 24, 96]) * PAGE_SIZE,
        state_interval_bytes=rng.choice([2, 8, 64]) * PAGE_SIZE,
        oob_piece_bytes=40_000,
        spill_bytes=60_000,
        redo_bytes=8 << 20,
        gtid_strict=False,
    )
    directory.mkdir()
    sizes = SIZES[: rng.randrange(2, len(SIZES) + 1)]
    with contextlib.closing(new_store(directory, options)) as store:
        for gtid in gtids:
            table = table_map(1, rng.choice(["shop.orders", "shop.items"]))
            events = [table, rows(1, ends=True, size=rng.choice(sizes)), make_event(16, gtid.server_id, bytes(8))]
            store.write_direct_ordered(gtid, make_gtid_event(gtid), events)
        store.sync()


def random_shape(rng, gtids):
    """What is made of a log before it is served: a part, some of it, other numbers, again and again."""
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        return lambda log: log
    if rng.random() < 0.3:
        options["only"] = "shop.orders"
    if rng.random() < 0.2:
        options["server"] = str(rng.choice(gtids).server_id)
    if rng.random() < 0.3:
        options["map_domain"], options["map_server_id"] = f"{gtids[0].domain_id}=9", f"{gtids[0].server_id}=90"
    if rng.random() < 0.2:
        options["until"] = str(rng.choice(gtids))
    options["drop_empty"] = bool(options) and rng.random() < 0.5
    rounds = 3 if rng.random() < 0.3 else 0

    def shape(engine):
        log = staged(engine, options, NameCase.EXACT, SchemaHistory) if any(options.values()) else engine
        if not rounds:
            return log
        repeated = RepeatedLog(StagedLog(log, span=span_so_far(log)), rounds)
        repeated.note_round(repeated.last_round_no)
        return repeated

    return shape


def question(rng, one, positions):
    """What one replica asks for: a place, perhaps with one domain farther than another."""
    other = one if rng.random() < 0.5 else rng.choice(positions)
    gtids = {domain: rng.choice([gtid, gtid, other.get(domain, gtid)]) for domain, gtid in one.items()}
    options: dict[str, Any] = {
        "position": str(GtidPosition(gtids.values())),
        "is_strict": rng.random() < 0.2,
        "knows_checksums": True,
    }
    if rng.random() < 0.1:
        options["until"] = rng.choice(positions)
    return options


def answer(dump_of, log, **options):
    try:
        dump = dump_of(log, **options)
    except IbbMasterError as error:
        return [str(error)]
    return [*packets_of(bytes(dump.data)), str(dump.error)]


PLACES = ((32, 36), (10, 14), (24, 32))  # of domain, server and number in a packet


def packets_of(data):
    found = []
    while data:
        size = int.from_bytes(data[:3], "little")
        packet, data = data[: 4 + size], data[4 + size :]
        domain_id, server_id, seq_no = (int.from_bytes(packet[begin:end], "little") for begin, end in PLACES)
        gtid = f"GTID {domain_id}-{server_id}-{seq_no} " if packet[9:10] == b"\xa2" else ""
        found.append(f"{gtid}{packet[:100].hex()} {zlib.crc32(packet)}")
    return found


def gtids_in(packets):
    return [text.split()[1] for text in packets if text.startswith("GTID ")]


def files_of(gtids, directory, kind, rng):
    """A directory of files of a kind with these groups."""
    write(directory, gtids, rng)
    if kind == "ibb":
        return directory
    files = directory.with_name(f"{directory.name}-files")
    files.mkdir()
    with contextlib.closing(open_files(directory)) as log:
        size = rng.choice([2000, 50_000, 1 << 30, 1 << 30])
        export_traditional(log, RealDisk(files), PROFILES[rng.choice(CLASSIC)], max_file_bytes=size)
    return files


def opened(directory, kind):
    return open_files(directory) if kind == "ibb" else ClassicBinlog([directory])


def test_what_a_dump_of_another_server_has_skipped_is_no_way_for_others(dump_of, tmp_path):
    gtids = [Gtid.parse(text) for text in ("5-9-54", "0-1-10", "0-1-11", "0-1-5", "0-7-12", "0-1-13")]
    files, shared = files_of(gtids, tmp_path / "log", "traditional", random.Random(1)), SharedBlocks()
    for position in ("0-7-12", "5-9-54,0-1-11"):
        one = {"position": position, "knows_checksums": True, "profile": "classic-10.11"}
        careful = answer(dump_of, ClassicBinlog([files]), is_fast=False, **one)
        assert answer(dump_of, ClassicBinlog([files]), is_fast=True, shared=shared, **one) == careful
    assert gtids_in(careful) == ["0-1-5", "0-7-12", "0-1-13"]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", ["ibb", "traditional"])
def test_a_dump_gets_what_it_gets_of_a_fresh_server_without_kernels(dump_of, stream_seeds, tmp_path, monkeypatch, kind):
    for seed in stream_seeds(SAMPLE):
        rng = random.Random(f"{seed} {kind}")
        monkeypatch.setattr(block_cache, "READERS_OF_SHARED", rng.choice([1, 99]))
        gtids, profile = random_gtids(rng), rng.choice(list(PROFILES))
        directory = files_of(gtids, tmp_path / f"{seed}", kind, rng)
        shape = random_shape(rng, gtids)
        try:
            served = shape(opened(directory, kind))
        except IbbMasterError:
            continue  # such a part there is not
        shared, positions = SharedBlocks(), positions_of(served)
        always = {"profile": profile, "knows_checksums": True}
        for _ in range(rng.choice([0, 0, 3])):
            dump_of(served, is_fast=True, shared=shared, stays=True, **always)
        for position in rng.sample(positions, min(len(positions), QUESTIONS_MAX)):
            options = {**always, **question(rng, position, positions)}
            wanted = answer(dump_of, shape(opened(directory, kind)), is_fast=False, **options)
            found = answer(dump_of, served, is_fast=True, shared=shared, **rng.choice(WAYS), **options)
            assert found == wanted, options


@pytest.mark.parametrize("kind", ["ibb", "traditional"])
def test_so_does_every_client_of_a_server(dump_of, stream_seeds, tmp_path, kind):
    for seed in stream_seeds(3):
        rng = random.Random(f"{seed} {kind}")
        directory = files_of(random_gtids(rng), tmp_path / f"{seed}", kind, rng)
        positions = [str(position) for position in positions_of(opened(directory, kind))]
        rng.shuffle(positions)
        with ibbmaster.serve(directory, user="repl", password="x", tls="off") as primary:
            for position in positions:
                options = {"is_fast": False, "position": position, "knows_checksums": True}
                wanted = answer(dump_of, opened(directory, kind), **options)
                found = listen_in(primary.port, position=position, user="repl", password="x").data
                assert gtids_in(packets_of(found)) == gtids_in(wanted), position
