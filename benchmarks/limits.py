"""What the machine can do: a server that sends the bytes of files as they are, or the same few bytes to many at once.

`python -m benchmarks.limits FILE...` prints its port and serves until it is killed, a thread for each client; with
`--clients` it waits for so many, and writes `--bytes` to each of them whenever one more client sends it a byte.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import threading

PIECE_BYTES = 256 * 1024


def send_all(client: socket.socket, descriptor: int) -> None:
    """Read pieces into one buffer and send each."""
    buffer = bytearray(PIECE_BYTES)
    view = memoryview(buffer)
    offset = 0
    while size := os.preadv(descriptor, [buffer], offset):
        client.sendall(view[:size])
        offset += size


def serve(client: socket.socket, paths: list[str]) -> None:
    """Send all files to one client, while it wants them."""
    with client, contextlib.suppress(ConnectionError):
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                send_all(client, descriptor)
            finally:
                os.close(descriptor)


def write_to_all(listener: socket.socket, count: int, size: int) -> None:
    """Write to so many clients, one after the other, each time the one who comes last asks for it."""
    clients = [listener.accept()[0] for _ in range(count)]
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
    descriptors = [client.fileno() for client in clients]
    data, write = bytes(size), os.write
    with listener.accept()[0] as asking:
        while asking.recv(1):
            for descriptor in descriptors:
                write(descriptor, data)


def main() -> None:
    """Serve plain bytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=main.__doc__)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--clients", type=int)
    parser.add_argument("--bytes", type=int)
    args = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        print(listener.getsockname()[1], flush=True)
        if args.clients is not None:
            write_to_all(listener, args.clients, args.bytes)
            return
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, args.paths), daemon=True).start()


if __name__ == "__main__":
    main()
