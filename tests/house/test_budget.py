"""The house gets smaller: how many lines each room may have. Who takes lines away lowers the number here."""

from collections import Counter
from pathlib import Path

from tests.case_table import rows_of

ROOT = Path(__file__).parents[2]
SLACK = 200  # lines that a budget may stand above its room
TESTS_MAX = 88_000
#: Lines of source by room; what lies beside the rooms is the room ".".
BUDGET = {room: int(lines) for room, lines in rows_of(__file__, "budget")}


def lines_of(folder: Path, endings: tuple[str, ...]) -> Counter[str]:
    """Lines of files by their room; what lies in no room is beside them."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.suffix in endings:
            parts = path.relative_to(folder).parts
            depth = 2 if (folder / Path(*parts[:2]) / "__init__.py").exists() else min(1, len(parts) - 1)
            found["/".join(parts[:depth]) or "."] += path.read_text().count("\n")
    return found


def test_no_room_has_grown_beyond_its_budget_and_no_budget_stands_far_above_its_room() -> None:
    rooms = lines_of(ROOT / "src" / "ibbmaster", (".py", ".c", ".h"))
    rooms["scorecard"] = lines_of(ROOT / "src" / "ibbmaster_scorecard", (".py",)).total()
    assert {room: lines for room, lines in rooms.items() if lines > BUDGET.get(room, 0)} == {}
    assert {room: rooms[room] for room, most in BUDGET.items() if most > rooms[room] + SLACK} == {}


def test_tests_grow_no_more_than_they_may() -> None:
    lines = lines_of(ROOT / "tests", (".py",)).total()
    assert TESTS_MAX - 2 * SLACK < lines <= TESTS_MAX
