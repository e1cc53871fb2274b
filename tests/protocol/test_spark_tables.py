"""The tables of protocol/spark.md against the code."""

from __future__ import annotations

import re
from pathlib import Path

from ibbmaster.spark.shape import CHANGE_FIELDS, GROUP_FIELDS

DOCUMENT = Path(__file__).parents[2] / "protocol" / "spark.md"


def test_the_columns_of_every_change_are_those_of_the_table():
    rows = re.findall(r"^\| `(_\w+)` \| ([\w(),]+) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [(field.name, field.type) for field in (*GROUP_FIELDS, *CHANGE_FIELDS)]
