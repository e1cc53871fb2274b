"""Bytes to a socket, in as few calls as it takes them in."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import trio

from ibbmaster.codec.buffer import Buffer

Wait = Callable[[int], Awaitable[object]]
"""Returns when a socket may take more."""


async def write_all(descriptor: int, data: Buffer, wait: Wait) -> None:
    """Write all of `data`, which must not change until this returns.

    Raises:
        trio.BrokenResourceError: the client is gone.
    """
    left = memoryview(data)
    while len(left):
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            await wait(descriptor)
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error
