"""The table of protocol/versions.md against the code."""

import re
from pathlib import Path

from ibbmaster.versions import END, Difference, version_number

TEXT = (Path(__file__).parents[2] / "protocol" / "versions.md").read_text()


def test_versions_differ_as_the_table_says():
    rows = re.findall(r"^\| ([A-Z][A-Z0-9_]+) \| ([0-9.]+) \|\s*([0-9.]*)\s*\| (.+) \|$", TEXT, flags=re.MULTILINE)

    assert [(name, version_number(since), version_number(until) or END, what) for name, since, until, what in rows] == [
        (one.name, one.since, one.until, one.meaning) for one in Difference
    ]
