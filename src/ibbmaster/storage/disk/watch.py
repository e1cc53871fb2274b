"""Notice writes to the files of a directory, by any process, without looking again and again.

The kernel reports them (inotify), but not those of others to a network file system: there it is time to look, every
`POLL_PERIOD_S`."""

import ctypes
import logging
import os
import select
import struct
import time
from pathlib import Path

from ibbmaster.facts import rows_of

log = logging.getLogger(__name__)

POLL_PERIOD_S = 0.002  # how late a write may be noticed without the kernel
GAP_S = 0.001  # between most notices: a busy writer writes often
NOTICES_AT_ONCE = 4  # the writes of an idle writer's group; each may be the last
EVENTS_SIZE = 1 << 16
CHANGES = 0x2 | 0x40 | 0x80 | 0x100 | 0x200  # IN_MODIFY, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE
ONLY_DIRECTORY = 0x01000000  # IN_ONLYDIR
REMOTE = {int(kind, 16): name for kind, name in rows_of(__package__, "remote_file_systems")}


class DirectoryWatch:
    """Wakes one waiting thread when files of a directory change; `why_polled` says why the kernel cannot."""

    def __init__(self, directory: Path | str) -> None:
        self.why_polled = ""
        self._descriptor: int | None = None
        self._told_at = float("-inf")
        self._in_a_row = 0  # notices that came so soon one after the other
        try:
            self._descriptor = _watch(directory)
        except OSError as error:
            self.why_polled = error.strerror or str(error)
        how = f"the kernel does not tell of writes ({self.why_polled}): looked at every {POLL_PERIOD_S * 1000:g} ms"
        log.debug("%s: %s", directory, how if self.why_polled else "the kernel tells of writes")

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change since the last call returned; False if none came for so long. True means that it is time to
        look. Notices are at least `GAP_S` apart, except the first `NOTICES_AT_ONCE`."""
        if self._descriptor is None:
            time.sleep(max(0.0, min(timeout_s, POLL_PERIOD_S)))
            return timeout_s >= POLL_PERIOD_S
        if not self._is_readable(timeout_s):
            return False
        wait_s = self._told_at + GAP_S - time.monotonic()
        self._in_a_row = self._in_a_row + 1 if wait_s > 0 else 1
        if wait_s > 0 and self._in_a_row > NOTICES_AT_ONCE:
            time.sleep(wait_s)
        self._told_at = time.monotonic()
        while self._descriptor is not None and self._is_readable(0):
            os.read(self._descriptor, EVENTS_SIZE)
        return True

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.close()

    def _is_readable(self, timeout_s: float) -> bool:
        assert self._descriptor is not None
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout_s) * 1000))


def _watch(directory: Path | str) -> int:
    """A descriptor, readable when files change. Raises OSError: the kernel cannot see all writes there."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = os.fsencode(directory)
    found = ctypes.create_string_buffer(256)
    if libc.statfs(path, found) == 0:
        (kind,) = struct.unpack_from("@l", found)
        if (name := REMOTE.get(kind & 0xFFFFFFFF)) is not None:
            raise OSError(0, f"{name} file system")
    if not hasattr(libc, "inotify_init1"):
        raise OSError(0, "no inotify here")
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(errno := ctypes.get_errno(), os.strerror(errno))
    if libc.inotify_add_watch(descriptor, path, CHANGES | ONLY_DIRECTORY) < 0:
        errno = ctypes.get_errno()
        os.close(descriptor)
        raise OSError(errno, os.strerror(errno))
    return descriptor
