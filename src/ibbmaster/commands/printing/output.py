"""The output of a log's text: a group at a time, whole or not at all."""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO

from ibbmaster.errors import StoreError
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.printable import UNSEEN

HELD_MAX = 64 << 20  # bytes of a group's text in memory; more is in a temporary file
PIECE_SIZE = 1 << 20
OBEYED = re.compile(f"[\0-\x08\x0b-\x1f]|{UNSEEN.pattern}")  # all but tab and line feed


class GroupOutput:
    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._is_seen = target.isatty()

    def write(self, pieces: Iterable[Buffer]) -> None:
        """Write a group; nothing if making its text fails. Pieces must stay unchanged until then. Raises
        BrokenPipeError: the reader closed it; OSError: it cannot be written."""
        with contextlib.ExitStack() as stack:
            held: list[Buffer] = []
            size, spool = 0, None
            for piece in pieces:
                size += len(piece)
                if size > HELD_MAX and spool is None:
                    spool = stack.enter_context(tempfile.TemporaryFile())
                    spool.writelines(held)
                    held.clear()
                if spool is None:
                    held.append(piece)
                else:
                    spool.write(piece)
            for piece in held if spool is None else _read(spool):
                self._target.write(shown(bytes(piece)) if self._is_seen else piece)

    def flush(self) -> None:
        self._target.flush()


def _read(spool: IO[bytes]) -> Iterator[bytes]:
    spool.seek(0)
    while piece := spool.read(PIECE_SIZE):
        yield piece


def shown(data: bytes) -> bytes:
    """For a terminal: control characters, and bytes that are no UTF-8, as `\\x1b`."""
    text = data.decode("utf-8", "backslashreplace")
    return OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text).encode()


@contextlib.contextmanager
def opened_output(path: Path | None, *, grows: bool = False) -> Iterator[BinaryIO]:
    """Standard output, or a file that gets its name once it is whole; a pipe or one that `grows` is written directly.
    It replaces what had that name, unless something fails. Raises StoreError: the file cannot be written."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    is_staged = not grows and (path.is_file() or not os.path.lexists(path))
    staging = path.parent / f".{path.name}.incomplete-{os.getpid()}" if is_staged else path
    try:
        target = staging.open("wb")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with target:
            yield target
        if is_staged:
            staging.replace(path)
    except BaseException:
        if is_staged:
            staging.unlink(missing_ok=True)
        raise
