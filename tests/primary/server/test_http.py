"""Figures over HTTP: what Prometheus reads, what is well and ready, and clients that are slow, huge, many or odd."""

import contextlib
import socket
import time

import prometheus_client.parser
import pytest

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.primary.server import http
from ibbmaster.primary.server.figures import Figure


class Source:
    said: tuple[str, ...] = ()
    silence = 0.0

    def figures(self):
        yield Figure("mysql_up", 1)
        yield Figure("mysql_global_status_connections", 12)
        for number in range(2):
            labels = {"server_id": number, "host": 'h"\\\n'}
            yield Figure("ibbmaster_replica_sent_bytes_total", 2**53 + number, labels)

    def problems(self):
        return self.said

    def silent_s(self):
        return self.silence


@pytest.fixture
def source():
    return Source()


@pytest.fixture
def watched(source):
    with http.watching("127.0.0.1", 0) as watched:
        watched.source = source
        yield watched


def ask(watched, request, *, wait_s=30.0):
    with socket.create_connection((watched.host, watched.port), wait_s) as client:
        with contextlib.suppress(OSError):
            client.sendall(request)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1 << 16):
                answer += part
        return answer


def get(watched, path):
    head, _, body = ask(watched, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()).partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body.decode()


def test_prometheus_reads_the_figures_with_their_meaning_and_labels(watched):
    status, head, body = get(watched, "/metrics?collect[]=x")
    assert (status, "text/plain; version=" in head) == (200, True)
    families = {family.name: family for family in prometheus_client.parser.text_string_to_metric_families(body)}
    assert families["mysql_up"].documentation == "1: this primary answers"
    assert families["mysql_global_status_connections"].samples[0].value == 12
    samples = families["ibbmaster_replica_sent_bytes"].samples
    assert {sample.labels["server_id"]: sample.labels["host"] for sample in samples} == dict.fromkeys("01", 'h"\\\n')


def test_it_is_ready_when_it_has_no_problem_and_well_while_it_works(watched, source):
    assert (get(watched, "/readyz")[::2], get(watched, "/healthz")[::2]) == ((200, "ok\n"), (200, "ok\n"))
    source.said = ("serving ends", "and more")
    assert get(watched, "/readyz")[::2] == (503, "serving ends\nand more\n")
    source.silence = 60.0
    assert get(watched, "/healthz")[::2] == (503, "nothing was done for 60 s\n")
    watched.source = None
    assert get(watched, "/readyz")[::2] == (503, "it has not begun\n")
    assert get(watched, "/metrics")[0] == 200


def test_a_log_that_cannot_be_read_is_said(watched, source, monkeypatch):
    def figures():
        raise StoreError("gone")
        yield

    monkeypatch.setattr(source, "figures", figures)
    assert get(watched, "/metrics")[::2] == (503, "the log cannot be read: gone\n")


ODD = {
    "another path": (b"GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
    "another method": (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"405"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    "no host": (b"GET /metrics HTTP/1.1\r\n\r\n", b"400"),
    "a huge head": (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000, b"431"),
    "bytes in the path": (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
    "nothing": (b"", b""),
}


@pytest.mark.parametrize(("request_bytes", "status"), ODD.values(), ids=ODD)
def test_an_odd_request_is_refused_and_the_next_one_answered(watched, request_bytes, status, monkeypatch):
    monkeypatch.setattr(http, "REQUEST_S", 0.3)
    answer = ask(watched, request_bytes)
    assert answer.split(b" ")[1:2] == [status] or answer == b""  # the rest of a huge head may reset the connection
    assert get(watched, "/healthz")[0] == 200


def test_slow_clients_lose_their_places_and_others_are_answered(watched, monkeypatch):
    monkeypatch.setattr(http, "REQUEST_S", 0.3)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        for _ in range(3 * http.CONNECTIONS_MAX):
            slow = stack.enter_context(socket.create_connection((watched.host, watched.port)))
            slow.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert get(watched, "/healthz")[0] == 200
    assert time.monotonic() - began < 20


def test_a_client_that_reads_nothing_loses_its_place(source, monkeypatch):
    monkeypatch.setattr(http, "ANSWER_S", 0.3)
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)
    many = [Figure("ibbmaster_gtid_seq", 1, {"domain": number, "server_id": "x" * 500}) for number in range(9000)]
    monkeypatch.setattr(source, "figures", lambda: many)
    with http.watching("127.0.0.1", 0) as watched, socket.socket() as slow:
        watched.source = source
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((watched.host, watched.port))
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert get(watched, "/healthz")[0] == 200


def test_an_address_that_is_taken_is_said(watched):
    with (
        pytest.raises(ConfigurationError, match=rf"on 127\.0\.0\.1:{watched.port}: Address already in use"),
        http.watching("127.0.0.1", watched.port),
    ):
        pass
    with http.watching("::1", 0) as other:
        assert get(other, "/healthz")[0] == 200
