"""Bytes from a socket that does not block, and to it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import trio

from ibbmaster.codec.buffer import Buffer

Wait = Callable[[int], Awaitable[object]]
"""Returns when a socket may take more."""


async def write_all(descriptor: int, data: Buffer, wait: Wait) -> None:
    """Write all of `data`, which must not change until this returns.

    Raises trio.BrokenResourceError: the client is gone.
    """
    left = memoryview(data)
    while len(left):
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            await wait(descriptor)
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error


def read_now(descriptor: int, size: int) -> bytes | None:
    """What has come, at most `size` bytes, and none if the client has left; None where nothing has come yet.

    Raises trio.BrokenResourceError: the connection is lost.
    """
    try:
        return os.read(descriptor, size)
    except BlockingIOError:
        return None
    except OSError as error:
        raise trio.BrokenResourceError(error.strerror) from error
