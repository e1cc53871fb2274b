"""Cases beside the tests of them: a `.tsv` file whose first line names its columns, or a `.json` file."""

import json
from pathlib import Path
from typing import Any


def cases_beside(module: str) -> dict[str, list[str]]:
    r"""The cells of each row by its first one, of the table of a module given as `__file__`; `\n` is a new line."""
    rows = rows_of(module, Path(module).stem)
    return {name: [cell.replace("\\n", "\n") for cell in cells] for name, *cells in rows}


def rows_of(module: str, table: str) -> list[list[str]]:
    """The rows of a table beside a module given as `__file__`; comments, and the names of columns, are for readers."""
    lines = Path(module).with_name(f"{table}.tsv").read_text().split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("# ")][1:]


def data_beside(module: str) -> Any:
    """What the `.json` file of a module given as `__file__` holds."""
    return json.loads(Path(module).with_suffix(".json").read_text())
