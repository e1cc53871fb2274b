"""The results of a verification: faults, and how much was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ibbmaster.errors import FormatError
from ibbmaster.position import LogPosition


class Fault(NamedTuple):
    """`location` is None if it concerns a whole file or the directory. No damage is what a healthy server leaves, too:
    a known quirk of MariaDB, or a primary without gtid_strict_mode."""

    problem: str
    location: LogPosition | None = None
    is_damage: bool = True
    is_misplaced: bool = False

    @classmethod
    def of(cls, error: FormatError) -> Fault:
        return cls(error.problem, error.location)

    def __str__(self) -> str:
        text = self.problem if self.location is None else f"{self.location}: {self.problem}"
        return text if self.is_damage else f"note: {text}"


@dataclass(slots=True)
class Totals:
    files: int = 0
    pages: int = 0
    groups: int = 0
    oob_records: int = 0

    def __str__(self) -> str:
        if not self.pages:  # traditional files have none
            return f"{self.files} files, {self.groups} event groups"
        return (
            f"{self.files} files, {self.pages} pages, {self.groups} event groups, "
            f"{self.oob_records} out-of-band records"
        )

    def add(self, other: Totals) -> None:
        self.files += other.files
        self.pages += other.pages
        self.groups += other.groups
        self.oob_records += other.oob_records
