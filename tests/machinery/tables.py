"""Tables of cases: a `.tsv` file beside the test that goes through it."""

from pathlib import Path


def rows_of(test: str, table: str) -> list[list[str]]:
    """The rows of a table beside a test as cells; comments, and the names of columns, are for readers."""
    lines = [
        line for line in Path(test).with_name(f"{table}.tsv").read_text().split("\n") if line[:2] not in ("", "# ")
    ]
    return [line.split("\t") for line in lines[1:]]
