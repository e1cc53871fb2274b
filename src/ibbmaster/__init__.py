"""A MariaDB replication primary without a MariaDB server.

These names are the package; everything else may move. Each is loaded at its first use: importing the package loads
neither trio nor PySpark."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api.following import Followed, follow, follow_trio
    from .api.group import Change, Event, Group
    from .api.log import Log
    from .api.opening import create, open
    from .api.restoring import restore
    from .api.serving import RunningPrimary, serve, serve_trio
    from .api.writing import OpenGroup, WritableLog
    from .errors import (
        BusyError,
        ConfigurationError,
        DuplicateGtidError,
        FormatError,
        IbbMasterError,
        PositionError,
        StoreError,
    )
    from .gtid import Gtid, GtidPosition, GtidState
    from .position import LogPosition

__version__ = "0.2.0"

__all__ = [
    "BusyError",
    "Change",
    "ConfigurationError",
    "DuplicateGtidError",
    "Event",
    "Followed",
    "FormatError",
    "Group",
    "Gtid",
    "GtidPosition",
    "GtidState",
    "IbbMasterError",
    "Log",
    "LogPosition",
    "OpenGroup",
    "PositionError",
    "RunningPrimary",
    "StoreError",
    "WritableLog",
    "__version__",
    "create",
    "follow",
    "follow_trio",
    "open",
    "restore",
    "serve",
    "serve_trio",
]

_PLACES = {  # module -> names in it
    "api.following": "Followed follow follow_trio",
    "api.group": "Change Event Group",
    "api.log": "Log",
    "api.opening": "create open",
    "api.restoring": "restore",
    "api.serving": "RunningPrimary serve serve_trio",
    "api.writing": "OpenGroup WritableLog",
    "errors": "BusyError ConfigurationError DuplicateGtidError FormatError IbbMasterError PositionError StoreError",
    "gtid": "Gtid GtidPosition GtidState",
    "position": "LogPosition",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .extras import needed_for

    with needed_for(f"{__name__}.{name}"):
        found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
