"""The house gets smaller: how many lines each room may have. Who takes lines away lowers the number here."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLACK = 200  # lines that a budget may stand above its room
TESTS_MAX = 86_450
#: Lines of source by room; what lies beside the rooms is the room "".
BUDGET: dict[str, int] = {
    "": 1_070,
    "api": 2_570,
    "arrow": 4_720,
    "capture": 260,
    "classic": 3_840,
    "cli": 2_100,
    "codec": 140,
    "comparison": 210,
    "dialogue": 3_840,
    "disk": 2_180,
    "dump": 2_060,
    "event": 6_130,
    "expr": 3_070,
    "fold": 3_950,
    "ibb": 970,
    "info": 1_240,
    "kernel": 5_800,
    "lake": 3_390,
    "log": 6_140,
    "player": 610,
    "printing": 1_790,
    "recorder": 1_700,
    "rows": 1_010,
    "schema": 6_200,
    "scorecard": 4_660,
    "select": 2_800,
    "server": 3_250,
    "spark": 1_700,
    "sqltext": 2_140,
    "stages": 1_830,
    "store": 4_470,
    "streaming": 3_190,
    "testkit": 5_560,
    "wire": 1_980,
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
