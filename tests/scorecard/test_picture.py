import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ibbmaster_scorecard import results as kept_results
from ibbmaster_scorecard.matrix import LOOKS, look_name
from ibbmaster_scorecard.picture import NAME_LENGTH_MAX, SIZE_MAX, SQUARE, render
from ibbmaster_scorecard.results import Grade, Results
from tests import scorecard_results

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "protocol" / "scorecard" / "results.json"
PICTURE = KEPT.with_name("picture.svg")
SHOWN = "[![Scorecard of binlog consumers](protocol/scorecard/picture.svg)](docs/scorecard.md)"
SVG = "{http://www.w3.org/2000/svg}"
ALL = {
    "every kind": scorecard_results.every_kind,
    "hostile": scorecard_results.hostile,
    "as many as are run": partial(scorecard_results.many, 70, 14),
    "as many as are run, twice": partial(scorecard_results.many, 140, 28),
    "many": partial(scorecard_results.many, 300, 15),
    "empty": partial(Results, made="2026-11-22T14:00:00Z", ibbmaster="0.1.0"),
}


def texts(picture: str, kind: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(picture).iter(f"{SVG}text") if node.get("class") == kind]


def squares(picture: str, look: str) -> int:
    paths = [node.get("d", "") for node in ElementTree.fromstring(picture).iter(f"{SVG}path")]
    classes = [node.get("class") for node in ElementTree.fromstring(picture).iter(f"{SVG}path")]
    return sum(path.count("H") for path, kind in zip(paths, classes, strict=True) if kind == f"square {look}")


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_a_picture_is_small_well_formed_and_the_same_each_time(make):
    results = make()
    picture = render(results)

    assert len(picture.encode()) <= SIZE_MAX
    assert ElementTree.fromstring(picture).tag == f"{SVG}svg"
    assert render(results) == picture


def test_each_consumer_has_its_name_and_what_it_was_run_with():
    picture = render(scorecard_results.every_kind())

    assert texts(picture, "name") == ["good-client", "bad-client (the fork)", "no-client"]
    assert "bad-client 1.2.3, Python 3.11.2" in texts(picture, "small")
    assert "not run: zig is not on PATH" in texts(picture, "small")
    assert texts(picture, "family") == ["cuts", "refusals", "damage", "silence", "formats"]
    assert "7 scenarios · ibbmaster 0.1.0 · 2026-11-22" in texts(picture, "small")


def test_each_cell_is_a_square_of_its_grade_and_legend_and_title_say_what_it_means():
    picture = render(scorecard_results.every_kind())

    assert {look: squares(picture, look) for look in map(look_name, LOOKS)} == {
        "exact": 5,  # with the position that is purged, which is told
        "repeats-groups": 1,
        "repeats-parts": 1,
        "loses-loudly": 1,
        "crashes": 1,
        "hangs": 1,
        "metadata-wrong": 0,
        "loses-silently": 2,
        "not-run": 9,
    }
    small = texts(picture, "small")  # with the legend
    assert [grade for grade in Grade if grade is not Grade.EXACT and grade not in small] == []
    assert {"as good as can be", "not run"} <= set(small)
    title = ElementTree.fromstring(picture).findtext(f"{SVG}title") or ""  # for who cannot see it
    assert "bad-client (the fork): 2 of 7 as good as can be, 2 silent losses." in title
    assert "no-client: not run." in title


def test_it_brings_its_own_ground_and_nothing_is_drawn_outside_of_it():
    picture = render(scorecard_results.every_kind())
    light, dark = re.findall(r"\.page\{fill:(#\w+)", picture)

    assert "@media (prefers-color-scheme:dark)" in picture
    assert light != dark
    assert f".loses-silently{{stroke:{LOOKS[Grade.LOSES_SILENTLY].dark_ground}}}" in picture
    for make in ALL.values():
        picture = render(make())
        width = float(ElementTree.fromstring(picture).get("width", "0"))
        ends = [float(end) for end in re.findall(r"H([\d.]+)", picture)]
        ends += [float(start) + SQUARE for start in re.findall(r'd="M([\d.]+) [\d.]+h', picture)]
        assert max(ends) < width


def test_nothing_in_it_comes_from_elsewhere_or_runs():
    picture = render(scorecard_results.hostile())

    assert [
        node.tag for node in ElementTree.fromstring(picture).iter() if node.tag in (f"{SVG}script", f"{SVG}img")
    ] == []
    assert not re.search(r"url\(|href|@import|<script|\son\w+=", re.sub(r">[^<]*<", "><", picture))
    assert all(len(name) <= NAME_LENGTH_MAX for name in texts(picture, "name"))


@pytest.mark.parametrize("count", [20, 70, 71, 132])
def test_each_symbol_stands_in_a_square_of_its_own_grade(count):
    paths: dict[str | None, str] = {}
    for node in ElementTree.fromstring(render(scorecard_results.many(count, 10))).iter(f"{SVG}path"):
        paths.setdefault(node.get("class"), node.get("d", ""))  # those of the legend come later
    for look in (look_name(grade) for grade in Grade if grade is not Grade.EXACT):
        runs = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", paths[f"square {look}"])
        squares = {((float(left) + float(right)) / 2, float(y)) for left, y, right in runs}
        symbols = re.findall(r"M([\d.]+) ([\d.]+)", paths[f"ink {look}-ink"])

        assert {(float(x), float(y)) for x, y in symbols} == squares


def test_every_finding_has_its_symbol_where_there_is_room():
    results = scorecard_results.many(70, 14)
    inks = [
        node.get("d", "")
        for node in ElementTree.fromstring(render(results)).iter(f"{SVG}path")
        if (node.get("class") or "").startswith("ink ")
    ]
    findings = sum(cell.grade is not Grade.EXACT for cell in results.cells)

    assert sum(ink.count("M") for ink in inks) == findings + len(Grade) - 1  # and those of the legend


def test_the_readme_shows_the_picture_of_the_results_that_are_kept_or_none(request):
    assert PICTURE.exists() == KEPT.exists() or request.config.getoption("--rewrite")
    assert (SHOWN in (ROOT / "README.md").read_text()) == KEPT.exists(), f"the README's line for it is {SHOWN}"
    if not KEPT.exists():
        return
    expected = render(kept_results.read_results(KEPT))
    if request.config.getoption("--rewrite"):
        PICTURE.write_text(expected)
    else:
        assert PICTURE.read_text() == expected, "pytest tests/scorecard/test_picture.py --rewrite draws it again"


@pytest.mark.parametrize(("count", "line_count"), [(40, 1), (132, 2)])
def test_each_consumer_has_lines_of_its_own(count, line_count):
    picture = render(scorecard_results.many(count, 10))
    names = [float(node.get("y", "0")) for node in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    heights = {float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)H", picture)}

    assert len(heights) == 10 * line_count
    assert min(names) < min(heights) < max(heights) < max(names)
