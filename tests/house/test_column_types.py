"""What is said of a column type is said in `event/column_types`; readers of columns ask there, and name no code."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
ROOM = PACKAGE / "event"

#: The modules outside of it that name type codes of MariaDB. This table only gets shorter.
BY_CODE = {
    "select/tables.py",  # how each is read into SQL
    "schema/names.py",  # the code of a type as DDL writes it ...
    "schema/table_map.py",  # ... and as a TABLE_MAP has it
    "scorecard/matching.py",  # numbers that other programs report
    "select/fast_rows.py",  # a kernel's steps
    "fold/contents.py",
    "fold/row_conversion.py",
    "fold/stored.py",
}
BY_VALUE_MOST = 20  # modules outside of it that ask what values a column has


def naming(word: str) -> set[str]:
    """The modules outside of the room of rows that name a class."""
    name = re.compile(rf"\b{word}\b")
    paths = [path for path in PACKAGE.rglob("*.py") if ROOM not in path.parents]
    return {str(path.relative_to(PACKAGE)) for path in paths if name.search(path.read_text())}


def test_only_these_modules_know_types_by_their_codes() -> None:
    assert naming("ColumnType") <= BY_CODE


def test_no_more_modules_than_now_ask_what_values_a_column_has() -> None:
    assert len(naming("ValueKind")) <= BY_VALUE_MOST
