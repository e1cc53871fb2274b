"""CRC-32C (Castagnoli), of pages and headers: google-crc32c's C part where it is installed, else crcmod."""

import contextlib
import importlib
from collections.abc import Callable

import crcmod.predefined

from .buffer import Buffer


def _choose() -> Callable[[Buffer], int]:
    with contextlib.suppress(ImportError):
        google = importlib.import_module("google_crc32c")
        if google.implementation == "c":  # its Python part is slower than crcmod's C part
            value = google.value
            return lambda data: int(value(data if type(data) is bytes else bytes(data)))
    return by_crcmod


by_crcmod: Callable[[Buffer], int] = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
crc32c = _choose()
