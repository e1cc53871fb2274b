"""The house gets smaller: how many lines each room may have. Who takes lines away lowers the number here."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLACK = 200  # lines that a budget may stand above its room
TESTS_MAX = 87_590
#: Lines of source by room; what lies beside the rooms is the room "".
BUDGET: dict[str, int] = {
    "": 1_130,
    "api": 2_590,
    "arrow": 4_630,
    "capture": 270,
    "classic": 4_090,
    "cli": 2_450,
    "codec": 150,
    "comparison": 230,
    "dialogue": 4_200,
    "disk": 2_210,
    "dump": 2_270,
    "event": 6_550,
    "expr": 3_540,
    "fold": 4_170,
    "ibb": 1_020,
    "info": 1_310,
    "kernel": 5_790,
    "lake": 3_500,
    "log": 6_640,
    "player": 670,
    "printing": 1_960,
    "recorder": 1_710,
    "rows": 1_080,
    "schema": 6_670,
    "scorecard": 4_380,
    "select": 3_180,
    "server": 3_470,
    "spark": 2_160,
    "sqltext": 2_220,
    "stages": 1_910,
    "store": 4_860,
    "streaming": 3_490,
    "testkit": 5_780,
    "wire": 2_110,
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
    rooms = lines_of(ROOT / "src" / "ibbmaster", (".py", ".c", ".h"))
    rooms["scorecard"] = lines_of(ROOT / "src" / "ibbmaster_scorecard", (".py",)).total()
    assert {room: lines for room, lines in rooms.items() if lines > BUDGET.get(room, 0)} == {}
    assert {room: rooms[room] for room, most in BUDGET.items() if most > rooms[room] + SLACK} == {}


def test_tests_grow_no_more_than_they_may() -> None:
    lines = lines_of(ROOT / "tests", (".py",)).total()
    assert TESTS_MAX - 2 * SLACK < lines <= TESTS_MAX
