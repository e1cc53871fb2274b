"""Segments: traditional binlog files, each packed as one frame."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ibbmaster.errors import StoreError
from ibbmaster.logs.classic.packing import ZSTD, PackedDataError, new_zstd_packer
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.disk.spool import Spool
from .manifest import Segment

PIECE_BYTES = 1 << 20
LEVEL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSegment:
    """A segment in a temporary file, with its entry but for the chain; `content` is the SHA-256 of what is in it."""

    entry: Segment
    path: Path
    content: str


def pack(source: IO[bytes], target: IO[bytes]) -> tuple[int, str, int, str]:
    """Returns size and SHA-256 of the source, and of the target."""
    packer = new_zstd_packer(LEVEL)
    found = [hashlib.sha256(), hashlib.sha256()]
    sizes = [0, 0]
    while True:
        piece = source.read(PIECE_BYTES)
        packed = packer.compress(piece) if piece else packer.flush()
        for at, data in enumerate((piece, packed)):
            found[at].update(data)
            sizes[at] += len(data)
        target.write(packed)
        if not piece:
            return sizes[0], found[0].hexdigest(), sizes[1], found[1].hexdigest()


def unpack(data: Buffer, size: int, where: str) -> tuple[Spool, str]:
    """The content of a segment, which has at most `size` bytes, and its SHA-256. Raises StoreError: it is damaged, or
    longer."""
    unpacker, spool, found, left = ZSTD.new_unpacker(), Spool(), hashlib.sha256(), size
    view = memoryview(data)
    try:
        while not unpacker.eof:
            packed, view = (view[:PIECE_BYTES], view[PIECE_BYTES:]) if unpacker.needs_input else (b"", view)
            if unpacker.needs_input and not packed:
                raise PackedDataError("the zstd data is cut short")
            piece = ZSTD.unpack(unpacker, packed, PIECE_BYTES)
            left -= len(piece)
            if left < 0:
                raise PackedDataError(f"it has more than {size} bytes")
            found.update(piece)
            spool.write(piece)
        if unpacker.unused_data or view:
            raise PackedDataError("bytes follow the zstd data")
    except PackedDataError as error:
        raise StoreError(f"{where}: {error}") from None
    return spool, found.hexdigest()
