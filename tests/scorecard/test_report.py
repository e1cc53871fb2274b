import dataclasses
import re
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster_scorecard import results as kept_results
from ibbmaster_scorecard.matrix import LOOKS
from ibbmaster_scorecard.report import DETAILS_MAX, TEXT_SIZE_MAX, table, text_for_authors
from ibbmaster_scorecard.results import Cell, Grade, Results
from tests import scorecard_results

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "scorecard.md"
KEPT = ROOT / "protocol" / "scorecard" / "results.json"
TABLES = KEPT.with_suffix(".md")


def rows(text: str, first: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(f"| {first}")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def one_cell(results: Results, cell: Cell) -> Results:
    return dataclasses.replace(results, cells=(cell,))


def test_a_family_has_a_table_of_scenarios_and_consumers():
    text = table(scorecard_results.every_kind())

    assert re.findall("^### (.*)", text, re.MULTILINE)[:5] == ["cuts", "refusals", "damage", "silence", "formats"]
    assert rows(text, "`cut-after-gtid`")[0][1:] == ["✓", "**silent**", "–"]
    assert rows(text, "`cut-between-rows`")[0][1:] == ["again", "parts", "–"]
    assert rows(text, "`half-event`")[0][1:] == ["loud", "crash", "–"]
    assert rows(text, "Scenario")[0] == ["Scenario", "good-client", "bad-client", "no-client"]
    assert rows(text, "`purged`")[0][1:] == ["loud ✓", "hangs", "–"]  # the best that can be, where that is not exact


def test_each_consumer_has_a_line_with_its_counts_and_its_version():
    text = table(scorecard_results.every_kind())

    good, bad, none = (rows(text, f"{name}")[0] for name in ("good-client", "bad-client", "no-client"))
    assert good[1:-1] == ["2", "1", "", "2", "", "", "", "", "3 of 5"]
    assert good[-1] == "good-client 1.2.3, Python 3.11.2 (PyPI); 2 scenarios not run"
    assert bad[1:-1] == ["2", "", "1", "", "1", "1", "", "2", "2 of 7"]
    assert none[1:-1] == [""] * 9
    assert none[-1] == "not run: zig is not on PATH"
    assert [grade for grade in Grade if f"**{grade}**: {grade.meaning}" not in text] == []


def test_silent_losses_are_listed_with_what_a_real_primary_showed_or_there_are_none():
    text = table(scorecard_results.every_kind()).partition("### Silent losses: 2\n")[2]

    lost = rows(text, "bad-client")
    assert [row[1] for row in lost] == ["`cut-after-gtid`", "`stall`"]
    assert lost[0][3] == "the same, 11.8.6-MariaDB: 0-3-102 is missing"
    assert lost[1][3] == "not tried"
    results = scorecard_results.every_kind()
    cell = scorecard_results.ran("good-client", "stall", Grade.EXACT)

    assert table(one_cell(results, cell)).endswith("### Silent losses\n\nNone.\n")


def test_rows_have_as_many_cells_as_their_head_and_texts_are_neither_html_nor_markdown():
    for results in (scorecard_results.every_kind(), scorecard_results.hostile(), scorecard_results.many(30, 13)):
        width = 0
        for line in table(results).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not cells or not width or cells == width, line
            width = cells
    hostile = scorecard_results.hostile()
    for text in (table(hostile), text_for_authors(hostile, scorecard_results.HOSTILE)):
        outside_of_code = re.sub(r"(?ms)^(`{3,}).*?^\1$|`[^`\n]*`", "", text.replace("\\`", "'"))
        for piece in ("<script", "</script", "<img", "<!--", " **bold**", "\u202e", "\x00"):
            assert piece not in outside_of_code, piece


def test_a_text_for_authors_has_each_finding_with_all_that_it_takes_to_see_it_again():
    text = text_for_authors(scorecard_results.every_kind(), "bad-client")

    findings = text.split("\n## ")[1:]
    assert [finding.partition("\n")[0] for finding in findings] == [
        "1. cut-after-gtid: loses silently",
        "2. stall: loses silently",
        "3. purged: hangs",
        "4. half-event: crashes",
        "5. cut-between-rows: repeats parts",
    ]
    for piece in (
        "The connection is cut between the GTID and the rows; the primary speaks as 11.8",
        "`cut after gtid; gtid=0-3-102`",
        "**Expected:** exact. Every change came once",
        "**Happened:** loses silently. 0-3-102 is missing (1 change)",
        "missing: `0-3-102 insert shop.orders id=2`",
        "asked again from `0-3-102`, 0.21 s after the fault",
        "**Told to the user:** nothing",
        "**With a real primary:** the same, 11.8.6-MariaDB: 0-3-102 is missing",
        "```sh\nibbmaster scorecard bad-client --scenario cut-after-gtid\n```",
        f"```toml\n{scorecard_results.TOML}```",
    ):
        assert piece in findings[0], piece
    assert "“java.lang.NullPointerException: x”" in findings[3]
    assert "started again with its last position: 3 ×" in findings[3]
    assert "**Expected:** loses loudly" in findings[2]
    assert "bad-client 1.2.3, Python 3.11.2, installed as bad-client 1.2.3 from Maven Central" in text
    text = text.partition("\n## ")[0]  # which begins with a list of them
    assert rows(text, "1 ") == [["1", "`cut-after-gtid`", "loses silently", "0-3-102 is missing (1 change)"]]
    assert rows(text, "5 ")[0][:3] == ["5", "`cut-between-rows`", "repeats parts"]


def test_of_many_changes_a_finding_names_the_first_and_counts_the_others():
    changes = tuple(f"0-3-{number} insert shop.orders id={number}" for number in range(20))
    cell = scorecard_results.ran("bad-client", "stall", Grade.LOSES_SILENTLY, missing=changes)
    text = text_for_authors(one_cell(scorecard_results.every_kind(), cell), "bad-client")

    assert text.count("  - missing: `0-3-") == DETAILS_MAX
    assert f"  - missing: {20 - DETAILS_MAX} more\n" in text


def test_a_long_text_has_files_of_the_gravest_findings_and_commands_for_those_of_the_others():
    text = text_for_authors(scorecard_results.many(200, 1), "consumer-number-0")
    findings = text.split("\n## ")[1:]
    has_file = ["```toml" in finding for finding in findings]
    has_command = ["`ibbmaster scorecard --show scenario-" in finding for finding in findings]

    assert has_file == [not shown for shown in has_command]
    assert has_file == sorted(has_file, reverse=True)
    assert {True, False} == set(has_file)
    assert len(text) < TEXT_SIZE_MAX


def test_a_real_primary_that_does_otherwise_is_said_as_well():
    results = scorecard_results.every_kind()
    given = next(cell for cell in results.cells if cell.confirmed)
    assert given.confirmed
    other = dataclasses.replace(given.confirmed, grade=Grade.EXACT, summary="all there")
    results = one_cell(results, dataclasses.replace(given, confirmed=other))

    assert "**With a real primary:** **exact**, 11.8.6-MariaDB: all there" in text_for_authors(results, "bad-client")
    assert rows(table(results), "bad-client (the fork) ")[-1][3] == "**exact**, 11.8.6-MariaDB: all there"


def test_authors_of_a_consumer_without_findings_are_thanked():
    results = scorecard_results.every_kind()
    cell = scorecard_results.ran("good-client", "stall", Grade.EXACT)
    text = text_for_authors(one_cell(results, cell), "good-client")

    assert "thank you" in text
    assert "## " not in text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nobody", "'nobody': the results have no such consumer; they have good-client, bad-client, no-client"),
        ("no-client", "no-client: it was not run: zig is not on PATH"),
    ],
)
def test_there_is_no_text_about_a_consumer_that_was_not_run(name, problem):
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        text_for_authors(scorecard_results.every_kind(), name)


def test_a_block_of_code_ends_where_its_text_ends():
    results = scorecard_results.every_kind()
    scenario = dataclasses.replace(results.scenarios[0], toml="a\n```\n````\n## b\n")
    text = text_for_authors(dataclasses.replace(results, scenarios=(scenario,)), "bad-client")

    assert "`````toml\na\n```\n````\n## b\n`````\n" in text


def test_the_guide_explains_each_grade_as_the_code_does():
    told = re.findall(
        r"^\| ([a-z ]+) \| ([^|]+) \| ([^|]+) \|$", GUIDE.read_text().partition("## A run")[2], re.MULTILINE
    )
    words = {**{grade: LOOKS[grade].word for grade in Grade}, Grade.EXACT: LOOKS[Grade.EXACT].symbol}

    assert told == [(grade.value, words[grade], grade.meaning) for grade in Grade]


def test_the_tables_beside_the_results_that_are_kept_are_of_them(request):
    expected = table(kept_results.read_results(KEPT))
    if request.config.getoption("--rewrite"):
        TABLES.write_text(expected)
    else:
        assert TABLES.read_text() == expected, "pytest tests/scorecard/test_report.py --rewrite writes them anew"
