"""What a verification finds, and how much it has read."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ibbmaster.errors import Location


class Severity(enum.Enum):
    """How bad something is."""

    DAMAGE = "damage"  # something was lost or changed
    NOTE = "note"  # what a healthy server leaves, too: a known quirk of MariaDB, or a primary without gtid_strict_mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong; `location` is None for what concerns a whole file or the directory."""

    problem: str
    location: Location | None = None
    severity: Severity = Severity.DAMAGE
    is_misplaced: bool = False  # it is about a page in the wrong place

    @property
    def is_damage(self) -> bool:
        return self.severity is Severity.DAMAGE

    def __str__(self) -> str:
        text = self.problem if self.location is None else f"{self.location}: {self.problem}"
        return text if self.is_damage else f"note: {text}"


@dataclass(slots=True)
class Totals:
    """What was read."""

    files: int = 0
    pages: int = 0
    groups: int = 0
    oob_records: int = 0

    def __str__(self) -> str:
        of_pages = self.pages > 0  # traditional files have none
        counts = [
            f"{self.files} files",
            *[f"{self.pages} pages"] * of_pages,
            f"{self.groups} event groups",
            *[f"{self.oob_records} out-of-band records"] * of_pages,
        ]
        return ", ".join(counts)

    def add(self, other: Totals) -> None:
        """Count what was read elsewhere."""
        self.files += other.files
        self.pages += other.pages
        self.groups += other.groups
        self.oob_records += other.oob_records
