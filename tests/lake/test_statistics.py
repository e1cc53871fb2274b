"""Pictures of an archive, and a page with them. What is counted, tests/cli/test_lake.py says."""

from __future__ import annotations

import pytest

import ibbmaster
from ibbmaster.info.log_info import log_info
from ibbmaster.lake.statistics import draw, statistics

FOUND = {
    "domains": [{"domain": 0, "groups": 3, "bytes": 10, "events": 9}],
    "hours": [{"hour": f"2026-05-10 {hour:02}:00", "groups": 1, "bytes": hour, "events": 1} for hour in range(24)] * 3,
    "biggest": [{"gtid": "0-1-1", "bytes": 9, "events": 3, "tables": ["<b>d.t</b>"]}],
    "tables": [{"table": "d.t", "groups": 1, "rows": None}],  # DDL alone: no rows
}


@pytest.mark.parametrize("name", ["ibb/xa-and-ddl", "ibb/domains"])
def test_spark_counts_what_is_counted_without_it(spark, fixtures, name):
    found = statistics(spark, str(fixtures / name))
    with ibbmaster.open(fixtures / name) as log:
        facts = log_info(log)
    kinds = {"inserts": "insert", "updates": "update", "deletes": "delete"}

    assert [(one["domain"], one["groups"], one["bytes"]) for one in found["domains"]] == [
        (one["domain"], one["groups"], one["bytes"]) for one in facts["domains"]
    ]
    assert {one["table"]: {kind: one[kind] for kind in kinds} for one in found["tables"] if one["rows"]} == {
        one["table"]: {kind: one[name]["count"] for kind, name in kinds.items()}
        for one in facts["tables"]
        if any(one[name]["count"] for name in kinds.values())
    }
    assert [one["bytes"] for one in found["biggest"]] == [one["bytes"] for one in facts["largest"]]
    assert sum(one["bytes"] for one in found["hours"]) == facts["bytes"]


def test_each_table_is_on_the_page_and_names_in_it_are_no_markup(tmp_path):
    pytest.importorskip("matplotlib")
    written = draw(FOUND, tmp_path / "page")
    page = written[-1].read_text()

    assert [path.name for path in written] == ["hours.png", "tables.png", "domains.png", "index.html"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written[:-1])
    assert all(f"<h2>{name}</h2>" in page for name in FOUND)
    assert "&lt;b&gt;d.t&lt;/b&gt;" in page
    assert "<b>" not in page


def test_an_archive_without_groups_has_empty_tables(tmp_path):
    pytest.importorskip("matplotlib")
    page = draw({name: [] for name in FOUND}, tmp_path)[-1].read_text()
    assert page.count("<table>") == page.count("</table>") == len(FOUND)
