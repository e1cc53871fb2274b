"""The states of a lake's tables: the rows of each, from which log, and up to where.

A run writes the list after all tables. After a killed run the tables themselves know more.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.lake.placing import foreign_in, replace_file
from ibbmaster.rows.certainty import doubt_text
from ibbmaster.sqltext.table_name import parse_table_name

HISTORY = "_ibbmaster-schema.cache"
LIST = "_ibbmaster-maintain.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Committed together with the rows."""

    commit: int = 0
    rows_at: str | None = None  # the GTID position whose rows it has, exactly; None: none
    seen: str = ""  # read up to this GTID position
    since: str = ""  # from which GTID on the log does not say its rows
    because: str = ""  # why it does not
    doubted: tuple[str, str] = "", ""  # the same of its rows, of which a later log says nothing
    is_gone: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether its rows are those that the table has at `seen`."""
        return not self.because and self.rows_at == self.seen

    @property
    def verdict(self) -> str:
        if self.is_gone:
            return f"gone, dropped or renamed; its rows here are those at {self.rows_at or 'no position'}"
        if self.is_exact:
            return f"exact at {self.rows_at}"
        has = "it has no rows here" if self.rows_at is None else f"its rows here are those at {self.rows_at}"
        return f"{doubt_text(self.since, self.because)}; {has}"

    def doubted_since(self, gtid: str, reason: str) -> "TableState":
        return replace(self, since=gtid, because=reason, doubted=(gtid, reason))

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def of_json(cls, value: object) -> Self:
        """Raises ValueError: it is no state."""
        match value:
            case {
                "commit": int(commit),
                "rows_at": str() | None as rows_at,
                "seen": str(seen),
                "since": str(since),
                "because": str(because),
                "is_gone": bool(is_gone),
                **others,
            }:
                found = cls(commit=commit, rows_at=rows_at, seen=seen, since=since, because=because, is_gone=is_gone)
                match others.get("doubted", (since, because if rows_at == seen else "")):
                    case (str(gtid), str(reason)):
                        return replace(found, doubted=(gtid, reason))
        raise ValueError("this is no state of a table")


@dataclass(slots=True)
class TableList:
    settings: Mapping[str, str]
    position: str = ""  # which the last run has reached
    marks: dict[str, tuple[str, int]] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)  # by name
    begun: tuple[str, list[str]] | None = None  # a table being written, and the files that were there
    history: bytes | None = None  # known schemas, which the log may have lost

    @classmethod
    def read(cls, place: Path, settings: Mapping[str, str]) -> Self:
        """That of a directory, or a new one. Raises ConfigurationError: its tables were made otherwise; StoreError: it
        holds something else."""
        path = place / LIST
        if not path.exists():
            foreign = foreign_in(place, LIST, HISTORY)
            if foreign is not None:
                raise StoreError(f"{place}: holds {foreign}, and no maintained tables: give an empty directory")
            return cls(settings)
        try:
            found = json.loads(path.read_text())
            assert found["format"] == FORMAT
            marks = {str(domain): (str(gtid), int(seconds)) for domain, (gtid, seconds) in found["marks"].items()}
            tables = {str(parse_table_name(name)): TableState.of_json(state) for name, state in found["tables"].items()}
            begun = None if found["begun"] is None else (str(found["begun"][0]), list(found["begun"][1]))
            known, position = {"--to": "delta"} | dict(found["settings"]), str(found["position"])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
            raise StoreError(f"{path}: this is no list of maintained tables") from None
        except ConfigurationError as error:
            raise StoreError(f"{path}: an older version wrote it: {error}: give an empty directory") from None
        for name, value in settings.items():
            if known.get(name) != value:
                raise ConfigurationError(f"{place}: its tables were made with {name} {known.get(name)}, not {value}")
        history = (place / HISTORY).read_bytes() if (place / HISTORY).exists() else None
        return cls(settings, position, marks, tables, begun, history)

    def write(self, place: Path) -> None:
        """Replace the list in one step; then the schemas, which have their own position."""
        value = {
            "format": FORMAT,
            "settings": dict(self.settings),
            "position": self.position,
            "marks": self.marks,
            "tables": {name: state.as_json() for name, state in sorted(self.tables.items())},
            "begun": self.begun,
        }
        replace_file(place / LIST, json.dumps(value, indent=1).encode())
        if self.history is not None:
            replace_file(place / HISTORY, self.history)
