"""The table of what stands here for the tests of MariaDB's suite `binlog_in_engine` is that of the tests' comments."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "protocol" / "engine-suite.md"
MARK = re.compile(
    r"^# As mysql-test/suite/binlog_in_engine/(\w+)\.test\n"
    r"(?=(?:(?!\n)(?:#|@|[^\n]).*\n)*?(?:async )?def (test_\w+)\()",  # looked ahead: one test may stand for several
    re.MULTILINE,
)
SUITE_SIZE = 63


def marked() -> dict[str, set[str]]:
    """By the name of a test of MariaDB: those of ours that stand for it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        names = MARK.findall(text)
        assert len(names) == text.count("\n# As mysql-test/suite/binlog_in_engine/"), path
        for theirs, ours in names:
            found[theirs].add(f"{path.relative_to(ROOT / 'tests')}::{ours}")
    return dict(found)


def rows() -> list[list[str]]:
    lines = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_has_the_tests_that_name_one_of_mariadb() -> None:
    table = {row[0].strip("`"): set(re.findall(r"`([\w/]+\.py::test_\w+)`", row[1])) for row in rows()}
    assert {name: ours for name, ours in table.items() if ours} == marked()


def test_each_test_of_the_suite_has_a_row_with_tests_or_a_reason() -> None:
    names = [row[0].strip("`") for row in rows()]
    assert names == sorted(names)
    assert len(set(names)) == len(names) == SUITE_SIZE
    assert [row[0] for row in rows() if not row[1]] == []
