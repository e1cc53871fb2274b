"""The captured binlogs in fixtures/classic, and what real replicas made of each."""

import json
import lzma
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lanes.content import TableContent

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
WITH_GENERATED = {"types.generated"}  # tables whose checksum is not the same in all releases of a version


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a real replica of one version came to."""

    tables: dict[str, TableContent]
    error: str | None  # MariaDB's text, if it could not replay the capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One folder of fixtures/classic."""

    version: str  # of the primary that wrote it
    name: str
    facts: dict[str, Any]  # expected.json

    @property
    def id(self) -> str:
        """As the README of the captures calls it: `10.11/domains`."""
        return f"{self.version}/{self.name}"

    @property
    def folder(self) -> Path:
        return CLASSIC / self.version / self.name

    @property
    def file_names(self) -> list[str]:
        return [file["name"] for file in self.facts["files"]]

    @property
    def last_position(self) -> str:
        """The GTID position after everything."""
        return str(self.facts["gtid_binlog_pos_after"])

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file["bytes"] for file in self.facts["files"])

    @property
    def is_encrypted(self) -> bool:
        return "START_ENCRYPTION" in self.facts["events"]

    @property
    def is_large(self) -> bool:
        """Too large to be followed by every client in every run."""
        return self.size > 100_000_000

    def replayed(self, version: str) -> Replayed:
        """What a real replica of `version` came to when a real primary served it."""
        outcome = self.facts["replayed_by_real_replicas"][version]
        tables = {name: TableContent(**numbers) for name, numbers in self.facts["tables"].items()}
        for name, difference in outcome["differ"].items():
            if difference["replica"] is not None:
                tables[name] = TableContent(**difference["replica"])
        for name in WITH_GENERATED & tables.keys():
            tables[name] = replace(tables[name], checksum=None)
        return Replayed(
            tables=tables, error=(outcome["io_error"] or outcome["sql_error"]) if not outcome["same"] else None
        )

    def unpack(self, directory: Path) -> list[Path]:
        """Put its binlog files into a directory; large ones are stored compressed."""
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        for name in self.file_names:
            source, target = self.folder / name, directory / name
            if source.exists():
                shutil.copyfile(source, target)
            else:
                with lzma.open(f"{source}.xz") as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
            paths.append(target)
        return paths


def load_captures() -> list[Capture]:
    """Every capture, by version and name."""
    return [
        Capture(version=path.parts[-3], name=path.parts[-2], facts=json.loads(path.read_text()))
        for path in sorted(CLASSIC.glob("*/*/expected.json"))
    ]
