import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster_scorecard import consumer as consumer_module
from ibbmaster_scorecard.consumer import Consumer, Supervised
from ibbmaster_scorecard.journal import ToldEvent

TIMEOUT_S = 30.0
TELL = """
import json, os, sys, time, signal, subprocess
asked = json.loads(sys.stdin.readline())
def tell(event, **keys):
    print(json.dumps({"event": event, **keys}), flush=True)
"""
Start = Callable[[str], Consumer]


@pytest.fixture
def start(tmp_path) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def started(script: str, **request: Any) -> Consumer:
            words = [sys.executable, "-c", TELL + script]
            consumer = Consumer(words, {"resume": None, **request}, directory=tmp_path)
            stack.callback(consumer.close, 0.0)
            return consumer

        yield started


def follow(consumer: Consumer | Supervised, is_so: Callable[[list[ToldEvent]], bool]) -> list[ToldEvent]:
    told: list[ToldEvent] = []
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so(told):
        assert time.monotonic() < deadline, told
        told += consumer.poll(0.02) if isinstance(consumer, Supervised) else consumer.events(0.02)
    return told


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_it_is_asked_in_a_line_and_tells_in_lines(start, tmp_path):
    script = "tell('version', text=asked['host'] + os.getcwd())\nsys.stdin.read()\ntell('error', text='asked to end')"
    consumer = start(script, host="h")
    (version,) = follow(consumer, bool)
    assert (version.text, version.process) == (f"h{tmp_path}", 1)
    assert not consumer.has_ended
    (last,) = consumer.close(TIMEOUT_S)
    assert (last.text, consumer.exit_code) == ("asked to end", 0)


def test_how_it_ended_is_known(start):
    for script, code in (("sys.exit(3)", 3), ("os.kill(os.getpid(), signal.SIGSEGV)", -11), ("", 0)):
        consumer = start(script)
        follow(consumer, lambda _, consumer=consumer: consumer.has_ended)
        assert consumer.close() == []
        assert consumer.exit_code == code


def test_what_ignores_everything_is_killed(start):
    consumer = start("signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntell('commit')\ntime.sleep(3600)")
    follow(consumer, bool)
    begun = time.monotonic()
    consumer.close(0.0)
    assert consumer.exit_code == -9
    assert time.monotonic() - begun < TIMEOUT_S


@pytest.mark.parametrize("end", ["", "time.sleep(3600)"], ids=["ended itself", "lived"])
def test_its_children_end_with_it(start, end):
    child = "import time; time.sleep(3600)"
    consumer = start(f"tell('unknown', text=str(subprocess.Popen([sys.executable, '-c', {child!r}]).pid))\n{end}")
    (event,) = follow(consumer, bool)
    consumer.close(0.0)
    follow(consumer, lambda _: is_gone(int(event.text)))


GARBAGE = {
    "text": "print('Hello')",
    "bytes": "os.write(1, b'\\xff\\n')",
    "an endless line": "import itertools\nfor _ in itertools.count(): os.write(1, b'x' * 65536)",
    "endless lines": "while True: tell('commit')",
}


@pytest.mark.parametrize("script", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_a_problem_of_the_adapter_and_costs_no_memory(start, script, monkeypatch):
    monkeypatch.setattr(consumer_module, "LINE_SIZE_MAX", 100_000)
    monkeypatch.setattr(consumer_module, "LINES_MAX", 1000)
    consumer = start(script)
    told = follow(consumer, lambda _: bool(consumer.problem))
    assert consumer.problem.startswith("line ")
    assert len(told) <= 1000
    consumer.close(0.0)


def test_half_a_line_at_its_end_is_none_and_the_end_of_its_log_is_kept(start):
    consumer = start("tell('commit')\nos.write(1, b'{\"event\": \"comm')")
    told = follow(consumer, lambda _: consumer.has_ended) + consumer.close()
    assert ([event.what for event in told], consumer.problem) == (["commit"], "")
    consumer = start("sys.stderr.write('x' * 1_000_000 + 'end')")
    follow(consumer, lambda _: consumer.has_ended)
    consumer.close()
    assert len(consumer.log) == 64 << 10
    assert consumer.log.endswith("xend")


def test_no_descriptor_and_no_thread_stays(start):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        start("").close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_command_that_is_none_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="/no/such/program: No such file"):
        Consumer(["/no/such/program"], {}, directory=tmp_path)


@pytest.fixture
def supervise(tmp_path, monkeypatch) -> Iterator[Callable[[str], Supervised]]:
    monkeypatch.setattr(consumer_module, "RESTARTS_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(consumer_module, "FATAL_S", 0.1)
    with contextlib.ExitStack() as stack:

        def started(script: str) -> Supervised:
            supervised = Supervised([sys.executable, "-c", TELL + script], {"start": "0-3-1"}, tmp_path)
            stack.callback(supervised.close, 0.0)
            supervised.start()
            return supervised

        yield started


def test_it_is_started_again_with_its_last_position_and_in_its_directory(supervise, tmp_path):
    script = """
tell('unknown', text=json.dumps(asked))
tell('position', position={'n': 1})
tell('position', position={'n': (asked['resume'] or {'n': 1})['n'] + 1})
sys.stderr.write(f"log {asked['resume']};")
"""
    supervised = supervise(script)
    told = follow(supervised, lambda _: supervised.has_ended)
    asked = [json.loads(event.text) for event in told if event.what == "unknown"]
    assert [one["resume"] for one in asked] == [None, {"n": 2}, {"n": 3}, {"n": 4}]
    assert {(one["start"], one["directory"]) for one in asked} == {("0-3-1", str(tmp_path))}
    assert [event.process for event in told if event.what == "unknown"] == [1, 2, 3, 4]
    assert (supervised.starts, supervised.exit_code, supervised.told) == (4, 0, told)
    assert supervised.log == "log None;log {'n': 2};log {'n': 3};log {'n': 4};"
    assert supervised.last_log == "log {'n': 4};"


def test_what_lives_until_it_is_ended_has_no_exit_code(supervise):
    supervised = supervise("tell('commit')\nsys.stdin.read()\ntell('commit')\nsys.exit(5)")
    follow(supervised, bool)
    supervised.close(TIMEOUT_S)
    assert (supervised.exit_code, supervised.has_ended, len(supervised.told)) == (None, True, 2)


def test_what_follows_no_more_is_ended_and_garbage_not_started_again(supervise):
    supervised = supervise("tell('error', text='over', is_fatal=True)\ntime.sleep(3600)")
    told = follow(supervised, lambda _: supervised.has_ended)
    assert [event.process for event in told] == [1, 2, 3, 4]
    assert supervised.exit_code == 1
    supervised = supervise("print('Hello', flush=True)\ntime.sleep(3600)")
    follow(supervised, lambda _: supervised.has_ended)
    assert supervised.starts == 1
    assert (
        supervised.problem == "line 1 of the adapter: b'Hello\\n': no JSON: Expecting value: line 1 column 1 (char 0)"
    )
