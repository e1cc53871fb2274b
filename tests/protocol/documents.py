"""The tables of the documents that the code is compared with."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
Row = dict[str, str]


def read_tables(document: str, heading: str) -> list[list[Row]]:
    """The tables under a heading of a document, up to the next one, each a list of rows by column name."""
    section = re.split(rf"^#+ {re.escape(heading)}$", (ROOT / document).read_text(), flags=re.MULTILINE)[1]
    section = re.split(r"^#+ ", section, flags=re.MULTILINE)[0]
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", section, flags=re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in block.splitlines())
        found.append([dict(zip(header, row, strict=True)) for row in rows])
    return found


def rows_under(document: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, as their cells."""
    return [[*row.values()] for row in read_tables(document, heading)[0]]


def places_of(rows: list[Row]) -> dict[str, tuple[int, int]]:
    """Field -> (offset, size), as far as both are numbers."""
    numbers = [row for row in rows if row["Offset"].isdigit() and row["Size"].isdigit()]
    return {row["Field"]: (int(row["Offset"]), int(row["Size"])) for row in numbers}
