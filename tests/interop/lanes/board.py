"""The table at the end of a run: what became of each capture with each client."""

from __future__ import annotations

from dataclasses import dataclass, field

OK = "ok"
FAILED = "FAILED"
SKIPPED = "skipped"
NOT_RUN = "-"


@dataclass(slots=True)
class Board:
    """Marks by row and column, with the reason of each mark that needs one."""

    cells: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def record(self, row: str, column: str, mark: str, reason: str = "") -> None:
        """Set a cell; a failure stays, whatever comes after it."""
        if self.cells.get((row, column), (OK, ""))[0] != FAILED:
            self.cells[row, column] = (mark, reason)

    def lines(self) -> list[str]:
        """The table and its footnotes as text."""
        rows = list(dict.fromkeys(row for row, _ in self.cells))
        columns = list(dict.fromkeys(column for _, column in self.cells))
        notes: dict[str, int] = {}
        table = [["", *columns]]
        for row in rows:
            line = [row]
            for column in columns:
                mark, reason = self.cells.get((row, column), (NOT_RUN, ""))
                line.append(f"{mark} [{notes.setdefault(reason, len(notes) + 1)}]" if reason else mark)
            table.append(line)
        widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
        return [*text, "", *(f"[{number}] {reason}" for reason, number in notes.items())]


class Cell:
    """A test's place in the table: `ok` unless the test says otherwise, or fails."""

    def __init__(self, board: Board, row: str, column: str) -> None:
        self._board, self._row, self._column = board, row, column
        self.mark(OK)

    @property
    def is_ok(self) -> bool:
        """Whether nothing else was said so far."""
        return self._board.cells[self._row, self._column][0] == OK

    def mark(self, mark: str, reason: str = "") -> None:
        """Say what became of it."""
        self._board.record(self._row, self._column, mark, reason)
