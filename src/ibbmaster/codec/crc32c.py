"""CRC-32C (Castagnoli), the checksum of pages and headers.

`crc32c` is the fast one: google-crc32c's C part where it is installed, else crcmod.
`crc32c_by_crcmod` is the independent second opinion that tests compare with.
"""

import importlib
from collections.abc import Callable

import crcmod.predefined

from ibbmaster.codec.buffer import Buffer

crc32c_by_crcmod: Callable[[Buffer], int] = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


def _choose() -> tuple[str, Callable[[Buffer], int]]:
    try:
        google = importlib.import_module("google_crc32c")
    except ImportError:
        return "crcmod", crc32c_by_crcmod
    if google.implementation != "c":  # its Python part is slower than crcmod's C part
        return "crcmod", crc32c_by_crcmod
    value = google.value
    return "google-crc32c", lambda data: int(value(data if type(data) is bytes else bytes(data)))


IMPLEMENTATION, crc32c = _choose()
