"""Pictures of an archive, and a page with them. What is counted, tests/cli/test_lake.py says."""

from __future__ import annotations

import pytest

from ibbmaster.lake.statistics import draw

FOUND = {
    "domains": [{"domain": 0, "groups": 3, "bytes": 10, "events": 9}],
    "hours": [{"hour": f"2026-05-10 {hour:02}:00", "groups": 1, "bytes": hour, "events": 1} for hour in range(24)] * 3,
    "biggest": [{"gtid": "0-1-1", "bytes": 9, "events": 3, "tables": ["<b>d.t</b>"]}],
    "tables": [{"table": "d.t", "groups": 1, "rows": None}],  # DDL alone: no rows
}


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
