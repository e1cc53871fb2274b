"""Results as a matrix of scenarios and consumers, and what table, page and picture have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ibbmaster.scorecard.grade import Grade
from ibbmaster.scorecard.results import Cell, ConsumerResult, Results, ScenarioResult


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeLook:
    """How a grade looks everywhere: a symbol, a short word, and colours that also the colour-blind tell apart.

    The better ones are pale, and what is not noticed is the darkest (on a dark page: the brightest), so that
    lightness alone shows the worst. `ground` and `ink` are for a light page, `dark_…` for a dark one.
    """

    symbol: str
    word: str
    ground: str
    ink: str
    dark_ground: str
    dark_ink: str


LOOKS: dict[Grade | None, GradeLook] = {
    Grade.EXACT: GradeLook(
        symbol="✓", word="exact", ground="#cfecdf", ink="#0a5a40", dark_ground="#12382c", dark_ink="#8fe0bf"
    ),
    Grade.REPEATS_GROUPS: GradeLook(
        symbol="+", word="again", ground="#d6e6fa", ink="#15498a", dark_ground="#153252", dark_ink="#a5cdfb"
    ),
    Grade.REPEATS_PARTS: GradeLook(
        symbol="/", word="parts", ground="#a9cbf5", ink="#0d3466", dark_ground="#1f4d83", dark_ink="#d3e6ff"
    ),
    Grade.LOSES_LOUDLY: GradeLook(
        symbol="!", word="loud", ground="#fbe7a8", ink="#604400", dark_ground="#4f3c08", dark_ink="#fbdc7c"
    ),
    Grade.CRASHES: GradeLook(
        symbol="×", word="crash", ground="#f5bd7e", ink="#562600", dark_ground="#80430a", dark_ink="#ffdcb5"
    ),
    Grade.HANGS: GradeLook(
        symbol="‖", word="hangs", ground="#cdb4ea", ink="#3a1a68", dark_ground="#553088", dark_ink="#e9d9ff"
    ),
    Grade.METADATA_WRONG: GradeLook(
        symbol="#", word="tables", ground="#f3b6cd", ink="#6a0f35", dark_ground="#5a1c3a", dark_ink="#ffc9dc"
    ),
    Grade.LOSES_SILENTLY: GradeLook(
        symbol="◇", word="silent", ground="#a50f3c", ink="#ffffff", dark_ground="#ff7a98", dark_ink="#35000f"
    ),
    None: GradeLook(
        symbol="–", word="not run", ground="#eceef1", ink="#5b6470", dark_ground="#23272e", dark_ink="#9aa4b1"
    ),
}


def look_name(grade: Grade | None) -> str:
    """The name of a grade's look in style sheets."""
    return "not-run" if grade is None else grade.name.lower().replace("_", "-")


def families(results: Results) -> dict[str, list[ScenarioResult]]:
    """The scenarios of each family, in the order of the results."""
    found: dict[str, list[ScenarioResult]] = {}
    for scenario in results.scenarios:
        found.setdefault(scenario.family, []).append(scenario)
    return found


def cells_by_place(results: Results) -> dict[tuple[str, str], Cell]:
    """A cell for every consumer and scenario; one that the results lack was not run."""
    given = {(cell.consumer, cell.scenario): cell for cell in results.cells}
    return {
        (consumer.name, scenario.name): given.get((consumer.name, scenario.name)) or _not_run(consumer, scenario)
        for consumer in results.consumers
        for scenario in results.scenarios
    }


def _not_run(consumer: ConsumerResult, scenario: ScenarioResult) -> Cell:
    return Cell(consumer=consumer.name, scenario=scenario.name, not_run=consumer.not_run or "not asked for")


def is_best(grade: Grade | None, scenario: ScenarioResult) -> bool:
    """Whether no consumer could do better in this scenario."""
    return grade is not None and grade.rank <= scenario.best.rank


def tally(results: Results, consumer: str) -> Counter[Grade | None]:
    """How many scenarios a consumer went through with each grade; None: those that were not run."""
    return Counter(cell.grade for place, cell in cells_by_place(results).items() if place[0] == consumer)


def findings(results: Results, consumer: str) -> list[tuple[ScenarioResult, Cell]]:
    """Where a consumer did worse than one could, the worst first."""
    cells = cells_by_place(results)
    found = [(scenario, cells[consumer, scenario.name]) for scenario in results.scenarios]
    worse = [(scenario, cell) for scenario, cell in found if cell.grade and not is_best(cell.grade, scenario)]
    return sorted(worse, key=lambda pair: -pair[1].grade.rank if pair[1].grade else 0)


def counted(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def plain(text: str) -> str:
    """A text from outside in one line of letters that every document may hold; others are shown by their number."""
    joined = " ".join(text.split())
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in joined)
