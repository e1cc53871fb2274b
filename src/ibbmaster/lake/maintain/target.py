"""What a run needs of a place for tables: each change of a table is one commit, with its state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.disk.place import ObjectPath
from ibbmaster.storage.disk.place import place as named_place

if TYPE_CHECKING:
    import pyarrow as pa

    from ibbmaster.lake.row_versions import LastChanges, NewVersions
    from .reshaping import Reshape
    from .state import TableState

APPLICATION = "ibbmaster-maintain"
DELTA, ICEBERG = "delta://", "iceberg://"
LIBRARIES = {DELTA: "deltalake", ICEBERG: "pyiceberg.catalog.sql"}
_PLAIN = re.compile(r"[\w-]")  # what a name of a directory has as it is


class ForeignChangeError(Exception):
    """Another program has written to a table."""


def directory_of(target: str, catalog: str | None = None) -> Path:
    """Raises ConfigurationError: the target cannot be written; or is in an object store, and would have a catalog."""
    place = named_place(target.removeprefix(scheme_of(target)))
    if target.startswith(DELTA) or catalog is not None:
        return place
    if isinstance(place, ObjectPath):
        raise ConfigurationError(
            f"--to: {place}: a catalog of its own is a database, which object stores cannot have: name a catalog of "
            "PyIceberg's configuration with --catalog"
        )
    if {"#", "?"} & set(str(place.resolve())):
        raise ConfigurationError("--to: Iceberg tables name their files by URLs, so no # or ? may be in their path")
    return place


def scheme_of(target: str) -> str:
    """Raises ConfigurationError: there is no such kind of tables."""
    for scheme in (DELTA, ICEBERG):
        if target.startswith(scheme) and target != scheme:
            return scheme
    raise ConfigurationError(f"--to is {target[:80]!r}, expected {DELTA}PATH or {ICEBERG}PATH")


def directory_name(table: str) -> str:
    """Database, dot, table; all but letters, digits, `-` and `_` as bytes, each after a tilde, as delta-rs takes per
    cent signs for escapes."""
    return ".".join(
        "".join(
            letter if _PLAIN.match(letter) else "".join(f"~{byte:02X}" for byte in letter.encode()) for letter in name
        )
        for name in parse_table_name(table)
    )


class TargetTable(Protocol):
    """One table, perhaps still to be made. All methods raise `StoreError` if it cannot be read or written."""

    def committed(self) -> TableState | None:
        """The state in a run's last commit; None without one. Raises StoreError: another program made this table."""

    def expect_own(self) -> None:
        """Raises ForeignChangeError: another program changed rows since a run's last commit."""

    def number(self) -> int:
        """How often a run has written the table."""

    def replace(self, rows: pa.RecordBatchReader, state: TableState) -> None: ...

    def can_reshape(self, reshape: Reshape) -> bool:
        """Whether rows get other columns without being written."""

    def merge(
        self, keys: Sequence[str], changes: LastChanges | NewVersions | pa.Table, reshape: Reshape, state: TableState
    ) -> bool:
        """Let the reshaped rows with these keys change, or add versions and end those they replace, or just add rows;
        returns whether the rows were as these changes say."""

    def files(self) -> set[str]:
        """All files that a run may leave without a commit."""

    def remove_orphans(self, known: set[str]) -> list[str]:
        """Remove files that came since `known` without a commit; returns their names."""


class Lake(Protocol):
    """Where tables are."""

    def table(self, full_name: str) -> TargetTable: ...

    def close(self) -> None: ...
