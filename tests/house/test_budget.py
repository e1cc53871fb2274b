"""The house gets smaller: how many lines each room may have. Who takes lines away lowers the number here."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLACK = 200  # lines that a budget may stand above its room
TESTS_MAX = 94_900
#: Lines of source by room; what lies beside the rooms is the room "".
BUDGET: dict[str, int] = {
    "": 1_190,
    "api": 2_760,
    "arrow": 4_890,
    "capture": 280,
    "classic": 4_320,
    "cli": 3_290,
    "codec": 160,
    "comparison": 240,
    "dialogue": 4_320,
    "disk": 2_300,
    "dump": 2_300,
    "event": 6_780,
    "expr": 3_670,
    "fold": 4_400,
    "ibb": 1_120,
    "info": 1_350,
    "kernel": 7_860,
    "lake": 3_810,
    "log": 7_050,
    "player": 710,
    "printing": 2_080,
    "recorder": 1_730,
    "rows": 1_110,
    "schema": 6_820,
    "scorecard": 4_590,
    "select": 3_270,
    "server": 3_640,
    "spark": 2_240,
    "sqltext": 2_430,
    "stages": 2_060,
    "store": 5_110,
    "streaming": 3_650,
    "testkit": 6_060,
    "wire": 2_250,
}


def lines_of(folder: Path, endings: tuple[str, ...]) -> Counter[str]:
    """Lines of files by the first folder that they are in."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.suffix in endings:
            parts = path.relative_to(folder).parts
            found[parts[0] if len(parts) > 1 else ""] += path.read_text().count("\n")
    return found


def test_no_room_has_grown_beyond_its_budget_and_no_budget_stands_far_above_its_room() -> None:
    rooms = lines_of(ROOT / "src" / "ibbmaster", (".py", ".pyx", ".c"))
    assert {room: lines for room, lines in rooms.items() if lines > BUDGET.get(room, 0)} == {}
    assert {room: rooms[room] for room, most in BUDGET.items() if most > rooms[room] + SLACK} == {}


def test_tests_grow_no_more_than_they_may() -> None:
    lines = lines_of(ROOT / "tests", (".py",)).total()
    assert TESTS_MAX - 2 * SLACK < lines <= TESTS_MAX
