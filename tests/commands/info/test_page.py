"""One page about a log: all that is known of it, nothing loaded, nothing from the log that is markup."""

from pathlib import Path

import ibbmaster
from ibbmaster.commands.cli.seek import seek_facts
from ibbmaster.commands.info.log_info import log_info
from ibbmaster.commands.info.page import HEIGHT, WIDTH, page
from tests.machinery.seen_page import SeenPage, browse, needs_chromium

FIXTURES = Path(__file__).parents[3] / "fixtures"
HOSTILE = "<script>document.title='x'</script><img src=x onerror=alert(1)>\"'&\x1b[31m\u202e"


def facts_of(name, position=None):
    with ibbmaster.open(FIXTURES / name) as log:
        facts = log_info(log.path, log.engine, log.stored)
        if position is not None:
            facts["seek"] = seek_facts(log.seek(position))
    return facts


def test_a_page_has_times_files_gtids_tables_and_groups():
    seen = SeenPage(page(facts_of("classic/10.11/domains")))
    for text in (
        "event groups 155",
        "first 2026-11-20T20:57:15Z 0-1-1",
        "MariaDB 10.11.19-MariaDB-0+deb12u1-log (3 starts)",
        "Bytes over time 7 spans of 1 s with transactions",
        "binlog.000006 3.3 KiB not closed: in use, or its server crashed",
        "999 missing between 1-1-32 and 1-1-1032",
        "dom_2.t 32 0 0 1 1,881",
        "4294967295-77-26 273 5 2026-11-20T20:57:19Z dom_4294967295.t",
        "ANNOTATE_ROWS 145 10,770",
    ):
        assert text in seen.text, text


def test_a_page_shows_the_path_of_a_search_step_by_step_and_file_by_file():
    seen = SeenPage(page(facts_of("ibb/types", "0-1-100")))
    assert "Where a replica at [0-1-100] begins binlog-000002.ibb page 1: state [0-1-118] has more" in seen.text
    assert "start at binlog-000001.ibb page 8, state [0-1-88]; 7 pages read" in seen.text
    assert "binlog-000000.ibb ← 2 256.0 KiB" in seen.text
    assert "binlog-000001.ibb ← 3, 4, 5, 6, start 256.0 KiB" in seen.text
    assert "begins refused: " in SeenPage(page(facts_of("ibb/types", "0-1-1000"))).text


def test_nothing_is_loaded_and_nothing_runs():
    text = page(facts_of("ibb/types"))
    seen = SeenPage(text)
    assert {"script", "img", "link", "iframe"} & {tag for tag, _ in seen.elements} == set()
    names = {name for _, attributes in seen.elements for name in attributes}
    assert {name for name in names if name.startswith("on")} | names & {"src", "href"} == set()
    assert "http" not in text.replace("http-equiv", "")
    assert dict(seen.elements[3][1])["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def hostile_facts():
    facts = facts_of("ibb/types", "0-1-100")
    facts["path"] = HOSTILE
    facts["tables"][0]["table"] = facts["largest"][0]["tables"][0] = HOSTILE
    facts["servers"] = [{"version": HOSTILE, "starts": 1}]
    facts["files"][0] |= {"name": HOSTILE, "state": HOSTILE, "problem": HOSTILE, "begins_after": HOSTILE}
    facts["redo_log"] = {"text": HOSTILE}
    facts["seek"] |= {"steps": [f"{HOSTILE} page 1"], "file": HOSTILE, "state": HOSTILE}
    facts["event_types"][0]["type"] = HOSTILE
    return facts


def test_texts_of_a_log_are_no_markup():
    text = page(hostile_facts())
    seen = SeenPage(text)
    assert {"script", "img"} & {tag for tag, _ in seen.elements} == set()
    assert seen.text.count("<script>document.title='x'</script>") >= 10
    assert "\\u001b[31m\\u202e" in seen.text
    assert not {"\x1b", "\u202e"} & set(text)


def test_bars_are_inside_of_the_picture():
    facts = facts_of("ibb/domains")
    rows = [{"from": f"{2000 + span}-01-01T00:00:00Z", "groups": 1, "bytes": span + 1} for span in range(3)]
    facts["time_line"] = {"span_seconds": 366 * 86400, "spans": rows}
    bars = [attributes for tag, attributes in SeenPage(page(facts)).elements if tag == "rect"]
    assert len(bars) == 3
    for bar in bars:
        x, y, width, height = (float(bar[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= WIDTH + 1
        assert 0 <= y <= y + height <= HEIGHT + 0.1


def test_an_empty_log_is_a_page_too(tmp_path):
    ibbmaster.create(tmp_path / "log", max_file_bytes="128K", has_background=False).close()
    with ibbmaster.open(tmp_path / "log") as log:
        assert "nothing is logged" in SeenPage(page(log_info(log.path, log.engine, log.stored))).text


@needs_chromium
def test_a_browser_shows_it_and_runs_nothing_of_a_hostile_log(tmp_path):
    seen = SeenPage(browse(page(hostile_facts()), tmp_path, "--dump-dom"))
    assert "<script>document.title='x'</script>" in "".join(seen.texts[:4])  # no program has set the title
    assert len(seen.of("table")) == 5
    assert seen.of("script") == seen.of("img") == []
