"""Cases in a table of text beside the tests of them: a `.tsv` file whose first line names its columns."""

from pathlib import Path


def cases_beside(module: str) -> dict[str, list[str]]:
    r"""The cells of each row by its first one, of the table of a module given as `__file__`; `\n` is a new line."""
    rows = [line.split("\t") for line in Path(module).with_suffix(".tsv").read_text().splitlines()[1:]]
    return {name: [cell.replace("\\n", "\n") for cell in cells] for name, *cells in rows}
