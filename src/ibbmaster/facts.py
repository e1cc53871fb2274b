"""Facts, mostly about MariaDB, as tables of text: a `.tsv` file beside each module that uses one."""

import pkgutil

NULL = "\\N"  # a cell without a value, as servers write it


def rows_of(package: str, table: str) -> list[list[str]]:
    """The rows of a table of a package as cells, without comments and column names."""
    data = pkgutil.get_data(package, f"{table}.tsv")
    assert data is not None  # it comes with the package
    lines = [line for line in data.decode().split("\n") if line and not line.startswith("# ")]
    return [line.split("\t") for line in lines[1:]]
