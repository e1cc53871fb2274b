"""The table at the end of a run: what became of each capture with each client.

Tests may run in several processes. Each report of a test carries its cell to the process that
prints the table.
"""

from dataclasses import dataclass, field

import pytest

OK = "ok"
FAILED = "FAILED"
SKIPPED = "skipped"
NOT_RUN = "-"
PROPERTY = "cell"  # of a report


@dataclass(slots=True)
class Board:
    """Marks by row and column, with the reason of each mark that needs one."""

    cells: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def record(self, row: str, column: str, mark: str, reason: str = "") -> None:
        """Set a cell; of several marks the worst stays, in whatever order they come."""
        old = self.cells.get((row, column))
        if old is None or _badness(mark) > _badness(old[0]):
            self.cells[row, column] = (mark, reason)

    def lines(self) -> list[str]:
        """The table and its footnotes as text."""
        rows = sorted({row for row, _ in self.cells})
        columns = sorted({column for _, column in self.cells})
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


def _badness(mark: str) -> int:
    return {OK: 0, SKIPPED: 1, FAILED: 3}.get(mark, 2)


@dataclass(slots=True)
class Cell:
    """A test's place in the table: `ok` unless the test says otherwise, or fails."""

    row: str
    column: str
    state: tuple[str, str] = (OK, "")

    def mark(self, mark: str, reason: str = "") -> None:
        """Say what became of it."""
        self.state = (mark, reason)

    def add_to(self, report: pytest.TestReport) -> None:
        """Let a report carry the cell, with what the report itself says of the test."""
        if report.failed:
            self.mark(FAILED)
        elif self.state[0] == OK and report.skipped and isinstance(report.longrepr, tuple):
            self.mark(SKIPPED, report.longrepr[2].removeprefix("Skipped: "))
        report.user_properties.append((PROPERTY, (self.row, self.column, *self.state)))


class BoardPrinter:
    """Fills the table from reports, and prints it: a pytest plugin."""

    def __init__(self, footer: str) -> None:
        self._board = Board()
        self._footer = footer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY:
                row, column, mark, reason = value
                self._board.record(row, column, mark, reason)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._board.cells:
            terminalreporter.section("captures and clients")
            for line in self._board.lines():
                terminalreporter.write_line(line)
            terminalreporter.write_line(f"\n{self._footer}")
