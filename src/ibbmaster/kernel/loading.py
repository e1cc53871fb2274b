"""Whether compiled kernels can be had, and when they are ready.

The first start on a machine compiles them, which takes seconds; later starts read them from
a cache. Whoever asks before they are ready goes the slow way.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import logging
import os
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType

log = logging.getLogger(__name__)

SWITCH = "IBBMASTER_KERNELS"  # environment variable: "off" goes the slow way, always
SOURCES = ("kernel", "ibb", "event")  # whose values are compiled in
READY = "fast kernels are ready"

_lock = threading.Lock()
_ready: ModuleType | None = None
_has_failed = False


def kernels() -> ModuleType | None:
    """`ibbmaster.kernel.warm` if it is ready; None until `load` or `load_in_background` has made it so."""
    return _ready


def load() -> ModuleType | None:
    """Load the kernels now, compiled and warm; None if they cannot be had here."""
    global _ready, _has_failed
    with _lock:
        if _ready is None and not _has_failed:
            begun = time.monotonic()
            _ready = _load()
            _has_failed = _ready is None
            if _ready is not None:
                log.info("%s after %.1f s", READY, time.monotonic() - begun)
    return _ready


def load_in_background() -> None:
    """Begin to load the kernels and return at once."""

    def work() -> None:
        if load() is not None:
            gc.freeze()  # the compiler's 150,000 objects: no collection has to look at them again

    if _ready is None and not _has_failed:
        threading.Thread(target=work, name="ibbmaster-kernels", daemon=True).start()


def _load() -> ModuleType | None:
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no"):
        return None
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        log.info("without Numba: pip install ibbmaster[fast] streams several times as fast")
        return None
    if not numba.config.CACHE_DIR:
        numba.config.CACHE_DIR = _cache_directory() or ""
    try:
        module = importlib.import_module("ibbmaster.kernel.warm")
        module.warm_up()
    except Exception:
        log.exception("the fast kernels cannot be used here; going on without them")
        return None
    return module


def _cache_directory() -> str | None:
    """A directory of this user alone that can be written; compiled code is read back from there.

    Its name says from which sources: Numba itself does not see a change in a module that is
    imported by that of a kernel.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    sources = sorted(path for part in SOURCES for path in (Path(__file__).parents[1] / part).glob("*.py"))
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    directory = Path(base) / "ibbmaster" / "kernels" / version
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError:
        return None
    return str(directory)
