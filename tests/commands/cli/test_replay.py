import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import ibbmaster
from ibbmaster.commands.cli.replay import progress_text
from ibbmaster.replication.event.types import EventType
from tests.logs.stages.test_engine import gtids_of, sent_gtids
from tests.tap import Tapped, listen_in

FIXTURES = Path(__file__).parents[3] / "fixtures"
TYPES = FIXTURES / "ibb" / "types"
TIMEOUT_S = 60


@contextmanager
def replaying(*options: object) -> Iterator[SimpleNamespace]:
    """`ibbmaster serve` with a pace, in a process of its own."""
    command = [sys.executable, "-m", "ibbmaster", "serve", *map(str, options), "--listen", "127.0.0.1:0", "--json"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = process.stdout.readline()
        assert said, process.stderr.read()
        yield SimpleNamespace(port=json.loads(said)["port"], process=process)
    finally:
        process.kill()
        process.communicate()


def gtids_in(tapped: Tapped) -> list[int]:
    events = [payload[1:] for payload in tapped.packets if payload[0] == 0]
    return [gtid.seq_no for gtid in sent_gtids([event for event in events if event[4] == EventType.GTID])]


def test_a_part_is_played_and_the_command_ends_with_it():
    with replaying(TYPES, "--pace", "max", "--after", "0-1-20", "--until", "0-1-30", "--at-end", "close") as player:
        assert gtids_in(listen_in(player.port, position="0-1-20")) == list(range(21, 31))
        assert player.process.wait(TIMEOUT_S) == 0
        assert "the recording has ended at 0-1-30" in player.process.stderr.read()


def test_it_is_played_several_times_with_newer_numbers():
    with replaying(TYPES, "--pace", "max", "--loop", 3, "--map-server-id", "1=7", "--map-domain", "0=4") as player:
        assert gtids_in(listen_in(player.port, position="4-7-440")) == list(range(441, 454))


@pytest.mark.parametrize("pace", ["max", "x100000"])
def test_where_the_numbers_of_an_endless_loop_end_replicas_and_stderr_hear_it(pace):
    log = FIXTURES / "classic/11.8/domains"
    with replaying(log, "--pace", pace, "--loop", "--domain", "1", "--drop-empty", "--at-end", "close") as player:
        tapped = listen_in(player.port, until=1 << 40)
        said = "the loop has ended: the numbers of domain 1 end after 3 rounds, as a round takes "
        assert tapped.end == "end"
        assert tapped.packets[-1].startswith(b"\xff" + (1236).to_bytes(2, "little") + b"#HY000" + said.encode())
        assert player.process.wait(TIMEOUT_S) == 0
        assert said in player.process.stderr.read()


def test_each_line_of_input_is_a_step():
    with replaying(TYPES, "--pace", "step") as player:
        for line, position in (("\n", "0-1-1"), ("4\n", "0-1-5"), ("what\n", None), ("2\n", "0-1-7")):
            player.process.stdin.write(line)
            player.process.stdin.flush()
            if position is not None:
                assert player.process.stdout.readline().strip() == position
        assert gtids_in(listen_in(player.port)) == list(range(1, 8))
        player.process.send_signal(signal.SIGTERM)
        _, said = player.process.communicate(timeout=TIMEOUT_S)
        assert player.process.returncode == 0
        assert "'what': expected Enter, or how many transactions" in said
        assert "\r" not in said, "there is no terminal"


def test_progress_is_one_line_with_where_the_recording_is():
    with ibbmaster.open(TYPES) as log:
        played = log.played("step")
        assert progress_text(played, 0.0, 0) == "not begun, 0 replicas"
        played.player.start()
        played.player.step(2)
        played.player.advance()
        said = progress_text(played, 1234.4, 1)
    assert said == "0-1-2  2026-11-20 20:54:13Z  1,234 transactions/s  1 replica"
    assert gtids_of("ibb/types")[1].seq_no == 2
