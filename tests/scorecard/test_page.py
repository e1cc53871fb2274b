import dataclasses
import re
from pathlib import Path
from urllib.parse import quote

import matplotlib.image

from ibbmaster_scorecard.matrix import LOOKS
from ibbmaster_scorecard.page import EVENT_BYTES_MAX, render
from ibbmaster_scorecard.results import FaultBytes, Grade, Results
from tests import scorecard_results
from tests.case_table import rows_of
from tests.machinery.seen_page import SeenPage, browse, needs_chromium


def opened(page: str, directory: Path, at: str = "") -> SeenPage:
    seen = SeenPage(browse(page, directory, "--dump-dom", at=at))
    assert seen.root.get("data-error") is None
    assert seen.root.get("data-ready") == "yes"
    return seen


def acting(program: str) -> str:
    """The page with a user: a program that runs after the page's own, which the page itself would not let run."""
    page = render(scorecard_results.every_kind())
    without_guard = re.sub(r"<meta http-equiv=[^>]*>", "", page)
    assert without_guard != page
    return without_guard.replace("</body>", f"<script>{program}</script></body>")


def test_the_matrix_is_a_table_that_can_be_read_without_its_program():
    seen = SeenPage(render(scorecard_results.every_kind()))

    assert len(seen.of("td")) == 3 * 7
    assert [attributes["class"] for attributes in seen.of("td")][:3] == ["exact", "loses-silently", "not-run"]
    assert "loses-loudly best" in [attributes["class"] for attributes in seen.of("td")]
    assert {attributes.get("scope") for attributes in seen.of("th")} == {"col", "row", "rowgroup"}
    for text in ("✓ exact", "◇ silent", "– not run", "cut-after-gtid", "2 of 7 right", "loses silently 2", "not run 9"):
        assert text in seen.text, text
    links = {attributes["href"] for attributes in seen.of("a")}  # each opens its cell
    assert links >= {"#bad-client/cut-after-gtid", "#bad-client", "#/cut-after-gtid"}


def test_the_page_needs_nothing_from_elsewhere_and_allows_nothing_but_its_own_program():
    page = render(scorecard_results.every_kind())
    seen = SeenPage(page)

    assert [attributes for _, attributes in seen.elements if "src" in attributes] == []
    assert not re.search(r"url\(|@import|https?://", page)
    policy = seen.of("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert re.match(r"default-src 'none'; .*script-src 'sha256-[\w+/]{43}='", policy["content"] or "")


def test_texts_from_outside_stay_texts():
    page = render(scorecard_results.hostile())
    seen = SeenPage(page)  # which also sees that each element ends where it should

    assert len(seen.of("script")) == 2
    assert seen.of("img") == []
    assert "\u202e" not in page.partition('<script type="application/json"')[0]
    assert {name for _, attributes in seen.elements for name in attributes if name.startswith("on")} == set()
    assert page.count("{{title}}") > 3  # what looks like a place of the template is none


def test_a_matrix_may_be_large_or_empty_and_what_cells_have_in_common_is_there_once():
    page = render(scorecard_results.many(300, 15))

    assert len(page.encode()) < 6_000_000
    assert page.count("connection 2: GTID 0-3-102") == 1
    assert "0 scenarios · 0 consumers" in SeenPage(render(Results(made="never", ibbmaster="0.1.0"))).text


def test_of_a_large_event_only_the_first_bytes_are_kept():
    results = scorecard_results.every_kind()
    event = FaultBytes(fault="cut", gtid=None, sent_bytes=0, event="ab" * 1_000_000)
    cell = dataclasses.replace(results.cells[0], bytes=(event,))
    page = render(dataclasses.replace(results, cells=(cell,)))

    assert "ab" * EVENT_BYTES_MAX + '"' in page
    assert len(page) < 200_000
    assert '"size":1000000' in page


@needs_chromium
def test_a_link_to_a_cell_opens_it_with_all_that_is_known(tmp_path):
    seen = opened(render(scorecard_results.every_kind()), tmp_path, at="#bad-client/cut-after-gtid")

    for (text,) in rows_of(__file__, "page_cell"):
        assert text in seen.text, text
    assert [attributes["class"] for attributes in seen.of("td")].count("loses-silently chosen") == 1


OTHERS = """
document.documentElement.dataset.said = ["#good-client/bad-crc", "#no-client/stall", "#bad-client", "#/purged", "#x/y"]
  .map(hash => { history.replaceState(null, "", hash); show(); return panel.textContent || "-"; }).join(" || ");
"""


@needs_chromium
def test_what_was_not_run_says_why_and_consumers_and_scenarios_have_a_place_of_their_own(tmp_path):
    seen = opened(acting(OTHERS), tmp_path)

    one, other, consumer, scenario, nothing = (seen.root["data-said"] or "").split(" || ")
    assert "it reads by file and position only" in one
    assert "zig is not on PATH" in other
    assert "ibbmaster scorecard bad-client --report bad-client" in consumer
    assert "Worse than can becut-after-gtid◇ loses silently" in consumer
    assert "bad-client (the fork)‖ hangs" in scenario
    assert nothing == "-"


@needs_chromium
def test_hostile_texts_do_not_run_and_are_shown_as_they_are(tmp_path):
    name = quote(scorecard_results.HOSTILE, safe="")
    seen = opened(render(scorecard_results.hostile()), tmp_path, at=f"#{name}/{name}")

    assert "data-hacked" not in seen.root
    assert seen.of("img") == []
    panel = seen.text[seen.text.index("Missing") :]
    assert panel.count("</script x><script>document") > 15
    assert "zz6a5f" in panel  # bytes that are none


@needs_chromium
def test_a_text_that_became_a_program_would_still_not_run(tmp_path):
    page = render(scorecard_results.every_kind())
    leaky = page.replace("</header>", "<script>document.documentElement.dataset.hacked = 'yes'</script></header>")

    assert "data-hacked" not in opened(leaky, tmp_path).root


@needs_chromium
def test_arrows_move_enter_opens_and_escape_comes_back(tmp_path):
    seen = opened(acting(Path(__file__).with_name("page_keys.js").read_text()), tmp_path)

    assert (seen.root["data-said"] or "").split() == [
        *("-", "#good-client/cut-after-gtid"),
        *("-", "#bad-client/purged"),
        *("#bad-client/purged", "#bad-client/purged"),
        *("#no-client/cut-between-rows", "#no-client/cut-between-rows"),
        *("#/cut-between-rows", "#/cut-between-rows"),
        *("#good-client", "#good-client"),
        *("-", "#good-client"),
        *("true", "1"),
    ]


@needs_chromium
def test_filters_leave_what_is_asked_for(tmp_path):
    seen = opened(
        acting(Path(__file__).with_name("page_filters.js").read_text()),
        tmp_path,
    )

    everything = "cut-after-gtid+cut-between-rows+purged+half-event+bad-crc+stall+old-format"
    said = (seen.root["data-said"] or "").splitlines()
    assert [line.partition(" ")[0] for line in said] == [
        "half-event+bad-crc",
        "half-event+bad-crc",
        everything,
        "cut-after-gtid+stall",
        "cut-after-gtid+purged+stall",
        "cut-between-rows+half-event",
        "purged",
        "",
        "false",
    ]
    assert said[2].endswith(" 21")
    assert said[3].endswith(" 2")


@needs_chromium
def test_the_page_can_be_seen(tmp_path):
    picture = tmp_path / "seen.png"
    browse(render(scorecard_results.every_kind()), tmp_path, f"--screenshot={picture}", at="#bad-client/cut-after-gtid")

    pixels = (matplotlib.image.imread(picture)[:, :, :3] * 255).round().astype(int)
    assert pixels.shape[0] > 500
    assert pixels.shape[1] > 1000
    for grade in (Grade.EXACT, Grade.LOSES_SILENTLY, Grade.HANGS):
        wanted = [int(LOOKS[grade].ground[place : place + 2], 16) for place in (1, 3, 5)]
        assert int((abs(pixels - wanted).max(axis=2) <= 2).sum()) > 300, grade
