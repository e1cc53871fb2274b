"""The compiled kernels, once they are loaded; until then callers take the reference path."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import threading
from typing import cast

from ibbmaster.position import LogPosition
from .calls import Kernels

log = logging.getLogger(__name__)

SWITCH = "IBBMASTER_KERNELS"  # environment variable: "off" always takes the reference path
WORK_TO_LOAD = 8 << 20  # bytes: what the reference path does while kernels are loaded

_lock = threading.Lock()
_kernels: Kernels | None = None
_has_failed = False


def kernels() -> Kernels | None:
    """None until `load` was called."""
    return _kernels


def load() -> Kernels | None:
    """Load the kernels, in milliseconds. None if there are none here, or the user wants none."""
    global _kernels, _has_failed
    if is_switched_off():
        return None
    with _lock:
        if _kernels is None and not _has_failed:
            try:
                from .entries import LIBRARY, Entries, has_instructions

                if not has_instructions():
                    raise OSError("this CPU has no instruction for CRC-32C")
                _kernels = cast(Kernels, Entries(LIBRARY))
            except (OSError, AttributeError) as error:
                _has_failed = True
                log.info("without compiled kernels, which are several times as fast: %s", error)
        return _kernels


@functools.cache
def has_numpy() -> bool:
    """Whether NumPy is there, which callers of kernels for rows and statistics need."""
    return importlib.util.find_spec("numpy") is not None


def is_switched_off() -> bool:
    return os.environ.get(SWITCH, "").lower() in ("off", "0", "no")


def do_pay(size_bytes: int) -> bool:
    """Whether kernels do work of that size sooner, loading included."""
    return size_bytes >= WORK_TO_LOAD and not is_switched_off()


def load_for_work(size_bytes: int) -> None:
    if do_pay(size_bytes):
        load()


def is_long(start: LogPosition, end: LogPosition) -> bool:
    """Whether it pays to load kernels to read a log from one position to another."""
    return end.file_no > start.file_no or end.offset - start.offset >= WORK_TO_LOAD


def kernels_at_hand(start: LogPosition, end: LogPosition) -> Kernels | None:
    """Kernels, and NumPy, to read rows from one position to another; they are loaded if that pays."""
    if not has_numpy():
        return None
    return load() if is_long(start, end) else kernels()
