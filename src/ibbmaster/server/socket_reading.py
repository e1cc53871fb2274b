"""Bytes from a socket that does not block."""

from __future__ import annotations

import os

import trio


def read_now(descriptor: int, size: int) -> bytes | None:
    """What has come, at most `size` bytes, and none if the client has left; None where nothing has come yet.

    Raises:
        trio.BrokenResourceError: the connection is lost.
    """
    try:
        return os.read(descriptor, size)
    except BlockingIOError:
        return None
    except OSError as error:
        raise trio.BrokenResourceError(error.strerror) from error
