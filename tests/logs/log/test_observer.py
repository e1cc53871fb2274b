"""A log that others write, in whatever order they do what they do: every answer is that of a server that just started.

A walk is a list of steps that each draw their own chances, so that a walk that fails is still one without most of them.
"""

import collections
import contextlib
import math
import random
import struct
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel import loading
from ibbmaster.logs.classic import framing as classic_framing
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log import end_check
from ibbmaster.logs.player.repeated_log import RepeatedLog
from ibbmaster.logs.store import followed
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.primary.streaming import shared
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import event_offsets
from tests.machinery.foreign_writer import CONTENT_BYTES, ClassicServer, ForeignWriter, IbbServer
from tests.machinery.served_log import ServedDump, ServedLog

WALK_STEPS = 50
WRITES = {
    "append": 8,
    "publish": 6,
    **dict.fromkeys(("append_a_part", "rotate", "begin_again"), 3),
    **dict.fromkeys(("purge", "rotate_and_purge", "reset", "write_another_over_it"), 2),
    **dict.fromkeys(("replace_by_a_copy", "cut", "remove"), 2),
    **dict.fromkeys(("restore", "remove_all", "make_anew"), 1),
}
ASKS = {"answer": 6, "dump": 6, "seek": 4, "loop": 2, "wait": 4, "go_on": 10, "leave": 1, "look": 3}
DUMPS_MAX = 4


def opened(directory, make):
    if make is ClassicServer:
        return ServedLog(ClassicBinlog([directory]), "classic-10.11")
    return ServedLog(FollowedDirectory(RealDisk(directory)), "engine")


@dataclass
class Waiting:
    """A dump that stays, with the server whose log it began in, and what it had at first."""

    dump: ServedDump
    server: object
    has: int

    def groups(self):
        found = []
        for event in self.dump.events:
            if event[4] == 162:
                seq_no, domain_id = struct.unpack_from("<QI", event, 19)
                found.append(((domain_id, struct.unpack_from("<I", event, 5)[0], seq_no), b""))
            elif event[4] == 160:
                found[-1] = found[-1][0], bytes(event[19 : 19 + CONTENT_BYTES])
        return found


def logged(server):
    return [((gtid.domain_id, gtid.server_id, gtid.seq_no), content) for gtid, content in server.groups]


def looped(log):
    """The GTIDs of a log that is played twice, and why it ends before that."""
    found = []
    try:
        log.engine.wait_for_growth(0.0)  # who is told that the log was reset begins again
        repeated = RepeatedLog(log.engine, rounds=2)
        with contextlib.closing(repeated.groups(repeated.start_of_file())) as groups:
            while (group := groups.next_group()) is not None:
                found.append(str(group.gtid))
                collections.deque(group.body, maxlen=0)
    except IbbMasterError as error:
        found.append(str(error))
    return found


@dataclass
class Walk:
    directory: Path
    make: type
    done: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.writer = ForeignWriter(self.directory, random.Random(0), self.make)
        self.log = opened(self.directory, self.make)
        self.dumps: list[Waiting] = []

    def step(self, number, seed):
        rng = self.writer.rng = self.writer.server.rng = random.Random(f"{seed} {number}")
        asks = rng.random() < 0.6
        verbs = ASKS if asks else WRITES
        verb = rng.choices(list(verbs), list(verbs.values()))[0]
        self.done.append(verb)
        if asks:
            getattr(self, verb)(rng)
        else:
            if not self.directory.exists() and verb not in ("remove_all", "write_another_over_it"):
                verb = "make_anew"
            getattr(self.writer, verb)()
        self.check_dumps()

    def close(self):
        for waiting in self.dumps:
            waiting.dump.close()
        self.log.engine.close()

    # What is asked

    @contextlib.contextmanager
    def fresh(self):
        """A server that has just begun; None where it cannot."""
        try:
            log = opened(self.directory, self.make)
            log.engine.state()
        except IbbMasterError:
            yield None
            return
        yield log
        log.engine.close()

    def answer(self, rng):
        answers = self.log.answers()
        with self.fresh() as fresh:
            assert fresh is None or answers == fresh.answers()

    def dump(self, rng):
        position = self.position(rng)
        found = self.log.dump(position)
        with self.fresh() as fresh:
            assert fresh is None or found == fresh.dump(position), position

    def seek(self, rng):
        position = self.position(rng)
        if isinstance(position, str):
            found = self.sought(self.log, position)
            with self.fresh() as fresh:
                assert fresh is None or found == self.sought(fresh, position), position

    def sought(self, log, position):
        try:
            plan = log.engine.seek(GtidPosition.parse(position))
        except IbbMasterError as error:
            return str(error)
        return log.engine.file_name(plan.position.file_no), plan.position.offset, str(plan.state), plan.is_begun

    def loop(self, rng):
        found = looped(self.log)
        with self.fresh() as fresh:
            assert fresh is None or found == looped(fresh)

    def wait(self, rng):
        position = self.position(rng) if rng.randrange(3) else ""
        try:
            dump = ServedDump(self.log, position)
        except IbbMasterError:
            return
        has = 0
        if position:
            alone = Waiting(dump, None, 0)
            dump.go_on()
            first = alone.groups()[:1]
            if not first or first[0] not in logged(self.writer.server):
                dump.close()
                return
            has = logged(self.writer.server).index(first[0])
        self.dumps.append(Waiting(dump, self.writer.server, has))
        if len(self.dumps) > DUMPS_MAX:
            self.dumps.pop(0).dump.close()

    def go_on(self, rng):
        for waiting in self.dumps:
            waiting.dump.go_on()

    def leave(self, rng):
        if self.dumps:
            self.dumps.pop(rng.randrange(len(self.dumps))).dump.close()

    def look(self, rng):
        with contextlib.suppress(IbbMasterError):
            self.log.engine.wait_for_growth(0.0)

    def position(self, rng):
        groups = self.writer.server.groups[: rng.randrange(len(self.writer.server.groups) + 1)]
        if rng.randrange(4):
            return str(GtidPosition({gtid.domain_id: gtid for gtid, _ in groups}.values()))
        number = rng.choice(list(self.writer.server.files))
        places = [4]
        if self.make is ClassicServer:
            data = self.writer.server.files[number]
            places += [*(at for at in event_offsets(data) if data[at + 4] == EventType.GTID), len(data)]
        return self.writer.path(number).name, rng.choice(places)

    # What must be

    def check_dumps(self):
        """No dump has got anything but the log that it began in, in order; all of it, where that is there."""
        for waiting in list(self.dumps):
            got = waiting.groups()
            expected = logged(waiting.server)[waiting.has :]
            is_same = waiting.server is self.writer.server
            if got != expected[: len(got)]:
                now = logged(self.writer.server)  # the new log may begin as the old one did
                assert got == now[: len(got)], (got[-2:], expected[len(got) - 2 : len(got)])
                waiting.server, waiting.has = self.writer.server, 0
            if waiting.dump.end is not None:
                is_by_gtid = waiting.dump.opened.start is not None
                says = waiting.dump.end
                is_told = b"purged" in says or (not got and b"no such file" in says)  # who has read nothing hears why
                assert not is_same or says[:1] != b"\xff" or not is_by_gtid or is_told, says
                waiting.dump.close()
                self.dumps.remove(waiting)
            elif self.done[-1] == "go_on" and self.writer.is_whole and is_same:
                if got != expected:  # a file that follows one that has ended is found by who looks at the directory
                    self.log.engine.wait_for_growth(0.0)
                    waiting.dump.go_on()
                assert waiting.groups() == expected, (len(got), len(expected))


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch):
    monkeypatch.setattr(followed, "LOOK_PERIOD_S", 0.0)
    monkeypatch.setattr(end_check, "PATIENCE_S", math.inf)  # on a slow machine, too: what lacks data waits for it


def failure(make, seed, numbers):
    """What goes wrong where only these steps of a walk are done; None if nothing does."""
    with tempfile.TemporaryDirectory() as name:
        walk = Walk(Path(name) / "log", make)
        try:
            for number in numbers:
                walk.step(number, seed)
        except Exception as error:
            return error, walk.done
        finally:
            walk.close()
    return None


def smallest(make, seed, numbers):
    """The steps that are left when each that is not needed for a failure is left out."""
    for number in reversed(numbers):
        fewer = [one for one in numbers if one != number]
        if failure(make, seed, fewer) is not None:
            numbers = fewer
    return numbers


@pytest.mark.parametrize("has_kernels", [True, False], ids=["kernels", "reference"])
@pytest.mark.parametrize("make", [ClassicServer, IbbServer], ids=["traditional", "ibb"])
def test_whatever_others_write_every_answer_is_that_of_a_fresh_look(make, has_kernels, monkeypatch, pytestconfig):
    for module in (shared, classic_framing):
        monkeypatch.setattr(module, "kernels", loading.load if has_kernels else lambda: None)
    steps = pytestconfig.getoption("--foreign-steps") // 4
    first = random.randrange(2**32) if pytestconfig.getoption("--seed") == "new" else pytestconfig.getoption("--seed")
    for walk in range(max(steps // WALK_STEPS, 1)):
        seed = f"{first} {walk}"
        numbers = list(range(WALK_STEPS))
        found = failure(make, seed, numbers)
        if found is not None:
            numbers = smallest(make, seed, numbers[: len(found[1])])
            error, done = failure(make, seed, numbers) or found
            raise AssertionError(f"seed {seed!r}, steps {numbers}: {done}") from error
