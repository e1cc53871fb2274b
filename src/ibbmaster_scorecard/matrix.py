"""Results as a matrix of scenarios and consumers, for table, page and picture."""

from collections import Counter
from typing import NamedTuple

from ibbmaster.facts import NULL, rows_of
from .results import Cell, ConsumerResult, Grade, Results, ScenarioResult


class GradeLook(NamedTuple):
    """How a grade looks: a symbol, a short word, and colours that also the colour-blind tell apart, for a light and a
    dark page."""

    symbol: str
    word: str
    ground: str
    ink: str
    dark_ground: str
    dark_ink: str


LOOKS: dict[Grade | None, GradeLook] = {
    None if grade == NULL else Grade[grade]: GradeLook._make(look) for grade, _, *look in rows_of(__package__, "grades")
}


def look_name(grade: Grade | None) -> str:
    return "not-run" if grade is None else grade.name.lower().replace("_", "-")


def families(results: Results) -> dict[str, list[ScenarioResult]]:
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
    return Counter(cell.grade for place, cell in cells_by_place(results).items() if place[0] == consumer)


def score(results: Results, consumer: str) -> tuple[int, int]:
    """How many of its runs were as good as possible, and how many there are."""
    counts, worse = tally(results, consumer), len(findings(results, consumer))
    runs = counts.total() - counts[None]
    return runs - worse, runs


def findings(results: Results, consumer: str) -> list[tuple[ScenarioResult, Cell]]:
    cells = cells_by_place(results)
    found = [(scenario, cells[consumer, scenario.name]) for scenario in results.scenarios]
    worse = [(scenario, cell) for scenario, cell in found if cell.grade and not is_best(cell.grade, scenario)]
    return sorted(worse, key=lambda pair: -pair[1].grade.rank if pair[1].grade else 0)


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def plain(text: str) -> str:
    """A text from outside in one line of printable letters; others become their numbers."""
    joined = " ".join(text.split())
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in joined)
