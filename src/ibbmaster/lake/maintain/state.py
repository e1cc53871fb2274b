"""What is known of a table of a lake: which rows it has, and whether they are those of the log."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Self

from ibbmaster.rows.certainty import doubt_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Committed together with the rows.

    Attributes:
        commit: how often a run has written the table.
        rows_at: the GTID position whose rows it has, exactly; None if it has none yet.
        seen: the GTID position up to which the log was read.
        since, because: from which GTID on the log does not say its rows, and why; empty if they are.
        doubted: the same of rows that it has, and that a later log says nothing of.
        is_gone: whether the log has no such table any more.
    """

    commit: int = 0
    rows_at: str | None = None
    seen: str = ""
    since: str = ""
    because: str = ""
    doubted: tuple[str, str] = "", ""
    is_gone: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether its rows are those that the table has at `seen`."""
        return not self.because and self.rows_at == self.seen

    @property
    def verdict(self) -> str:
        """In words."""
        if self.is_gone:
            return f"gone, dropped or renamed; its rows here are those at {self.rows_at or 'no position'}"
        if self.is_exact:
            return f"exact at {self.rows_at}"
        has = "it has no rows here" if self.rows_at is None else f"its rows here are those at {self.rows_at}"
        return f"{doubt_text(self.since, self.because)}; {has}"

    def doubted_since(self, gtid: str, reason: str) -> TableState:
        """The same with rows that may not be all."""
        return replace(self, since=gtid, because=reason, doubted=(gtid, reason))

    def as_json(self) -> dict[str, object]:
        """For a file, or for the log of a table."""
        return asdict(self)

    @classmethod
    def of_json(cls, value: object) -> Self:
        """The inverse of `as_json`.

        Raises:
            ValueError: it is no state.
        """
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
