"""The table of what stands here for the tests of MariaDB's suite `binlog_in_engine` is that of the tests' comments."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "protocol" / "engine-suite.md"
MARK = re.compile(
    r"^# As mysql-test/suite/binlog_in_engine/(\w+)\.test(?:, cases? ([\d ,and]+))?\n"
    r"(?=(?:(?!\n)(?:#|@|[^\n]).*\n)*?(?:async )?def (test_\w+)\()",  # looked ahead: one test may stand for several
    re.MULTILINE,
)
SUITE_SIZE = 63


def marked() -> tuple[dict[str, set[str]], dict[str, set[int]]]:
    """By the name of a test of MariaDB: those of ours that stand for it, and the numbers of cases that they name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    cases: defaultdict[str, set[int]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        names = MARK.findall(text)
        assert len(names) == text.count("\n# As mysql-test/suite/binlog_in_engine/"), path
        for theirs, numbers, ours in names:
            found[theirs].add(f"{path.relative_to(ROOT / 'tests')}::{ours}")
            if numbers:
                cases[theirs] |= set(map(int, re.findall(r"\d+", numbers)))
    return dict(found), dict(cases)


def rows() -> list[list[str]]:
    lines = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_has_the_tests_that_name_one_of_mariadb() -> None:
    table = {row[0].strip("`"): set(re.findall(r"`([\w/]+\.py::test_\w+)`", row[1])) for row in rows()}
    assert {name: ours for name, ours in table.items() if ours} == marked()[0]


def test_the_table_counts_the_cases_that_these_tests_name() -> None:
    counted = {row[0].strip("`"): row[2] for row in rows() if row[2]}
    _, cases = marked()
    assert {name: int(text.split(" of ")[0]) for name, text in counted.items()} == {
        name: len(numbers) for name, numbers in cases.items()
    }
    assert all(max(cases[name]) <= int(text.split(" of ")[1]) for name, text in counted.items())


def test_each_test_of_the_suite_has_a_row_with_tests_or_a_reason() -> None:
    names = [row[0].strip("`") for row in rows()]
    assert names == sorted(names)
    assert len(set(names)) == len(names) == SUITE_SIZE
    assert [row[0] for row in rows() if not row[1]] == []
