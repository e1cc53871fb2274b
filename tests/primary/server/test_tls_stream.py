"""TLS on a socket: every byte arrives, in either direction at once, whatever the version and however it is sent."""

import contextlib
import random
import socket
import ssl
import struct
import threading

import pytest
import trio
import trio.testing

from ibbmaster.primary.server.certificate import make_certificate
from ibbmaster.primary.server.client_stream import Sender
from ibbmaster.primary.server.tls_stream import PIECE_BYTES, THREAD_MIN, TlsStream

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
SIZES = [1, 1000, THREAD_MIN - 1, THREAD_MIN, PIECE_BYTES, PIECE_BYTES + 1, 3 << 20, 10]


@pytest.fixture(scope="module")
def certificate():
    return make_certificate()


class Client:
    def __init__(
        self, one: socket.socket, version: ssl.TLSVersion, *, resetting: threading.Event | None = None
    ) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = context.minimum_version = version
        self.received = bytearray()
        self.error: Exception | None = None
        self.resetting = resetting  # when it shall end the connection by a reset; None: it reads
        self._socket, self._context = one, context
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._context.wrap_socket(self._socket) as self._secure:
                secure = self._secure
                secure.settimeout(60)
                secure.sendall(b"login")
                if self.resetting is not None:
                    self.resetting.wait(60)
                    secure.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                while data := secure.recv(20_000):
                    if len(self.received) // 300_000 < (len(self.received) + len(data)) // 300_000:
                        secure.sendall(b"ack")
                    self.received += data
        except OSError as error:
            self.error = error

    def leave(self) -> None:
        socket.socket.shutdown(self._secure, socket.SHUT_RDWR)

    def forge(self, data: bytes) -> None:
        socket.socket.sendall(self._secure, data)

    async def join(self) -> None:
        await trio.to_thread.run_sync(self._thread.join)


@contextlib.asynccontextmanager
async def connected(certificate, version: ssl.TLSVersion = VERSIONS[1]):
    stream, theirs = pair()
    client = Client(theirs, version)
    async with stream:
        secure = TlsStream(stream, certificate.context, trio.CapacityLimiter(1))
        await secure.do_handshake()
        assert await secure.receive_some(100) == b"login"
        yield client, secure
    await client.join()


def pair(*, is_tcp: bool = False) -> tuple[trio.SocketStream, socket.socket]:
    if is_tcp:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            theirs = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
    else:
        ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
    return trio.SocketStream(trio.socket.from_stdlib_socket(ours)), theirs


@pytest.mark.parametrize("is_tcp", [False, True], ids=["local", "TCP"])
@pytest.mark.parametrize("version", VERSIONS, ids=str)
async def test_all_arrives_while_the_client_sends_too(certificate, version, is_tcp):
    blocks = [random.randbytes(size) for size in SIZES]
    stream, theirs = pair(is_tcp=is_tcp)
    client = Client(theirs, version)
    got = bytearray()
    async with stream, trio.open_nursery() as nursery:
        secure = TlsStream(stream, certificate.context, trio.CapacityLimiter(1))
        await secure.do_handshake()
        assert secure.version == version.name.replace("_", ".")
        assert "AES" in secure.cipher or "CHACHA" in secure.cipher
        assert await secure.receive_some(2) == b"lo"
        assert secure.holds_more  # of which the socket does not tell any more
        assert await secure.receive_some(100) == b"gin"
        assert not secure.holds_more

        async def receive() -> None:
            while data := await secure.receive_some(100):
                got.extend(data)

        nursery.start_soon(receive)
        sender = Sender(secure)
        assert sender.sink is secure
        assert secure.descriptor is None
        for block in blocks:
            await sender.send(memoryview(block))
        size = sum(SIZES)
        while len(got) < len(b"ack") * (size // 300_000):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        if is_tcp:  # nothing is held back
            assert not stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK)
    await client.join()
    assert client.received == b"".join(blocks)
    assert bytes(got) == b"ack" * (size // 300_000)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
async def test_what_a_thread_has_sent_in_part_goes_on_where_it_ended(certificate, version):
    rng = random.Random(random.randrange(2**32))
    sent = bytearray()
    async with connected(certificate, version) as (client, secure), trio.open_nursery() as nursery:

        async def receive() -> None:
            while await secure.receive_some(100):
                pass

        nursery.start_soon(receive)
        for _ in range(20):
            data = bytearray(rng.randbytes(rng.choice([0, 1, PIECE_BYTES, 3 * PIECE_BYTES + 1])))
            taken = await trio.to_thread.run_sync(secure.write, data)
            assert taken <= len(data)
            sent += data[:taken]
            data[:taken] = bytes(taken)  # the memory of what was taken is used again
            if rng.random() < 0.7:  # else the thread comes back
                await Sender(secure).send(bytes(data[taken:]))
                sent += data[taken:]
        await Sender(secure).send(b"")
        nursery.cancel_scope.cancel()
    assert client.received == sent


async def test_a_client_that_leaves_is_told_apart(certificate):
    for version in VERSIONS:
        async with connected(certificate, version) as (client, secure):
            client.leave()
            assert await secure.receive_some(100) == b""
            for size in (10, 3 << 20):
                with pytest.raises(trio.BrokenResourceError):
                    await Sender(secure).send(bytes(size))


async def test_what_ends_one_connection_is_no_error_of_another(certificate):
    """OpenSSL keeps errors in a list of the thread, where the next call would find them."""
    clients, sockets, streams = [], [], []
    for resetting in (None, threading.Event(), None):
        stream, theirs = pair(is_tcp=True)
        clients.append(Client(theirs, VERSIONS[1], resetting=resetting))
        sockets.append(stream)
        streams.append(TlsStream(stream, certificate.context, trio.CapacityLimiter(1)))
        await streams[-1].do_handshake()
        assert await streams[-1].receive_some(100) == b"login"
    sound, *broken = streams
    clients[1].resetting.set()
    await clients[1].join()
    clients[2].forge(b"\x17\x03\x03\x00\x20" + bytes(32))
    for secure, words in zip(broken, ["Connection reset by peer", "bad record mac"], strict=True):
        with pytest.raises(trio.BrokenResourceError, match=words):
            await secure.receive_some(100)
        for _ in range(2):
            assert sound.receive_now(100) is None
            assert secure.write(bytes(1 << 20)) == 0
            assert sound.receive_now(100) is None
            assert sound.write(b"event") == 5
    for stream in sockets:
        await stream.aclose()
    for client in clients:
        await client.join()
    assert clients[0].received == b"event" * 4


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.0\r\n\r\n", bytes(100)], ids=["nothing", "words", "zeros"])
async def test_what_is_no_tls_ends_the_connection(certificate, data):
    stream, theirs = pair()
    theirs.sendall(data)
    theirs.shutdown(socket.SHUT_WR)
    with theirs:
        async with stream:
            with pytest.raises(trio.BrokenResourceError), trio.fail_after(60):
                await TlsStream(stream, certificate.context, trio.CapacityLimiter(1)).do_handshake()


async def test_what_is_altered_on_its_way_ends_the_connection(certificate):
    async with connected(certificate) as (client, secure):
        client.forge(b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises(trio.BrokenResourceError):
            await secure.receive_some(100)


async def test_a_client_that_takes_nothing_is_dropped_in_time(certificate, autojump_clock):
    stream, theirs = pair()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(arriving, leaving)
    with theirs:
        theirs.setblocking(False)
        async with stream, trio.open_nursery() as nursery:
            secure = TlsStream(stream, certificate.context, trio.CapacityLimiter(1))
            nursery.start_soon(secure.do_handshake)
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    theirs.sendall(leaving.read())
                    while True:
                        try:
                            arriving.write(theirs.recv(1 << 16))
                            break
                        except BlockingIOError:
                            await trio.lowlevel.checkpoint()
            theirs.sendall(leaving.read())
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.TooSlowError):
                await Sender(secure).send(bytes(3 << 20))
