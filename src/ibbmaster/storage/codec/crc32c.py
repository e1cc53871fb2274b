"""CRC-32C (Castagnoli), of pages and headers: google-crc32c's C part where it is installed, else crcmod."""

import contextlib
import importlib
from typing import Protocol

import crcmod.predefined

from .buffer import Buffer


class Checksum(Protocol):
    """Of bytes that follow others which have the CRC `before`."""

    def __call__(self, data: Buffer, before: int = 0, /) -> int: ...


def _choose() -> Checksum:
    with contextlib.suppress(ImportError):
        google = importlib.import_module("google_crc32c")
        if google.implementation == "c":  # its Python part is slower than crcmod's C part
            extend = google.extend
            return lambda data, before=0: int(extend(before, data if type(data) is bytes else bytes(data)))
    return by_crcmod


by_crcmod: Checksum = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
crc32c = _choose()
