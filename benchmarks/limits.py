"""What the machine can do: a server that sends the bytes of files as they are, a thread for each client.

`python -m benchmarks.limits FILE...` prints its port and serves until it is killed.
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


def main() -> None:
    """Serve plain bytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=main.__doc__)
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, args.paths), daemon=True).start()


if __name__ == "__main__":
    main()
