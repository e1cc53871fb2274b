import contextlib
import json
import random
import socket

import pytest

from ibbmaster.testkit.control import CONNECTIONS_MAX, LINE_SIZE_MAX, QUESTIONS, ControlSocket
from ibbmaster.testkit.scenario import parse_scenario
from tests.tap import listen_in

TABLE = '[tables]\n"shop.t" = {id = "int primary key", data = "blob"}\n'


class Asking:
    def __init__(self, address, token=None):
        self._token = token
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._file = self._socket.makefile("rwb")

    def __call__(self, do, **how):
        return self.raw(json.dumps({"do": do, **how}).encode())

    def raw(self, line):
        """The answer to a line, with the token if it is an object; none where the connection ends."""
        if self._token is not None and line.startswith(b"{") and line.endswith(b"}"):
            line = b'{"token": "' + self._token.encode() + b'", ' + line[1:]
            self._token = None
        self._file.write(line + b"\n")
        self._file.flush()
        answer = self._file.readline()
        return json.loads(answer) if answer else None

    def close(self):
        self._file.close()
        self._socket.close()


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def primary():
    with parse_scenario(TABLE).serving() as primary:
        yield primary


@pytest.fixture
def ask(primary, stopped):
    with (
        contextlib.closing(ControlSocket(primary, lambda: stopped.append(True))) as control,
        contextlib.closing(Asking(control.address, control.token)) as ask,
    ):
        ask.address, ask.token = control.address, control.token
        yield ask


def test_a_test_in_any_language_writes_faults_and_asks(ask, primary, stopped):
    assert ask("group", changes=[{"insert": "shop.t", "values": {"id": 1, "data": "x"}}]) == {
        "ok": True,
        "gtid": "0-1-3",
    }
    assert ask("table", name="shop.t") == {"ok": True, "rows": [{"id": 1, "data": "78"}]}
    assert ask("position") == {"ok": True, "position": "0-1-3", "port": primary.port}
    assert ask("authority") == {"ok": True, "file": str(primary.authority_file)}
    assert ask("fault", place="after gtid", action="cut", by="end", gtid="0-1-3")["fault"] == "cut after gtid of 0-1-3"
    assert ask("fault", line="error before dump 2; text=said")["ok"]
    assert len(ask("faults")["pending"]) == 2
    assert [p[5] for p in listen_in(primary.port).packets].count(162) == 3
    done = ask("faults")["done"]
    assert [(record["fault"], record["gtid"]) for record in done] == [("cut after gtid of 0-1-3", "0-1-3")]
    assert bytes.fromhex(done[0]["event"])[4] == 162
    (seen,) = ask("connections")["connections"]
    assert (seen["user"], seen["server_id"], seen["sent_gtids"]) == ("repl", 7, ["0-1-1", "0-1-2"])
    assert ask("wait", replica=7, gtid="0-1-2", timeout=10) == {"ok": True}
    assert not ask("wait", replica=7, timeout=0.01)["ok"]
    assert ask("clear") == {"ok": True}
    assert ask("faults", timeout=1)["pending"] == []
    assert ask("now", action="clock", seconds=5) == {"ok": True}
    assert ask("now", action="restart", profile="10.6") == {"ok": True}
    assert ask("now", action="restart", profile="9.9")["error"] == "there is no profile '9.9': choose one of " + (
        "engine, compat, classic-10.11, classic-11.8"
    )
    assert ask("stop") == {"ok": True}
    assert stopped == [True]


WRONG = [
    *(b'{"do": 5}', b'{"do": "fly"}', b'{"do": "clear", "x": 1}'),
    *(b'{"do": "fault"}', b'{"do": "fault", "line": 5}', b'{"do": "fault", "action": "crash", "at": 1}'),
    *(b'{"do": "now", "action": "cut"}', b'{"do": "group"}', b'{"do": "table", "name": "no"}', b'{"do": "wait"}'),
    *(b'{"do": "wait", "replica": 7, "timeout": 1e9}', b'{"do": "wait", "replica": 7, "gtid": "x"}'),
    *(b'{"do": "faults", "timeout": NaN}', b'{"do": "table", "name": "a.b", "columns": {"id": 5}}'),
]


@pytest.mark.parametrize("line", WRONG)
def test_what_means_nothing_is_answered_by_one_line(ask, line):
    answer = ask.raw(line)
    assert answer["ok"] is False
    assert answer["error"]
    assert "\n" not in answer["error"]
    assert ask("position")["ok"]


NO_OBJECTS = {
    "nothing": b"",
    "half an object": b"{",
    "a number": b"5",
    "a list": b"[]",
    "brackets": b"[" * 100_000,
    "no letter": b"\xff",
    "a line that is too long": b" " * (LINE_SIZE_MAX + 5),
    "what a browser sends": b'POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n{"do": "stop"}',
}


@pytest.mark.parametrize("line", NO_OBJECTS.values(), ids=NO_OBJECTS)
@pytest.mark.parametrize("is_known", [False, True])
def test_a_line_that_is_no_object_ends_the_connection_without_an_answer(ask, stopped, line, is_known):
    with contextlib.closing(Asking(ask.address, ask.token)) as other:
        if is_known:
            assert other("position")["ok"]
        with contextlib.suppress(OSError):
            assert other.raw(line) is None
    assert ask("position")["ok"]
    assert not stopped


@pytest.mark.parametrize("token", [None, "wrong", "\u00fc"])
def test_who_does_not_know_the_token_is_told_so_and_nothing_is_done(ask, stopped, token):
    with contextlib.closing(Asking(ask.address)) as other:
        how = {} if token is None else {"token": token}
        assert other("stop", **how) == {"ok": False, "error": "the first question has to have the token"}
        with contextlib.suppress(OSError):
            assert other("stop") is None
    assert not stopped


def test_too_many_connections_are_told_so(ask):
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX - 1):
            other = stack.enter_context(contextlib.closing(Asking(ask.address, ask.token)))
            assert other("position")["ok"]
        assert (
            stack.enter_context(contextlib.closing(Asking(ask.address)))("position")["error"] == "too many connections"
        )


def test_noise_is_answered_line_by_line(ask, stream_seeds):
    rng = random.Random(next(stream_seeds(1)))
    for _ in range(100):
        asked = {"do": rng.choice([*QUESTIONS][:-1])}
        for key in ("place", "action", "name", "columns", "changes", "replica", "line", "timeout"):
            if rng.random() < 0.3:
                asked[key] = rng.choice([None, 1, -1, "x", "cut", "after gtid", [], [{}], {}, {"id": 1}, True])
        if asked["do"] != "wait" and "timeout" not in asked:
            assert "ok" in ask.raw(json.dumps(asked).encode())
