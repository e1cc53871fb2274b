"""Cases beside the tests of them: a `.tsv` file whose first line names its columns, or a `.json` file."""

import json
from pathlib import Path
from typing import Any


def cases_beside(module: str) -> dict[str, list[str]]:
    r"""The cells of each row by its first one, of the table of a module given as `__file__`; `\n` is a new line."""
    rows = [line.split("\t") for line in Path(module).with_suffix(".tsv").read_text().splitlines()[1:]]
    return {name: [cell.replace("\\n", "\n") for cell in cells] for name, *cells in rows}


def data_beside(module: str) -> Any:
    """What the `.json` file of a module given as `__file__` holds."""
    return json.loads(Path(module).with_suffix(".json").read_text())
