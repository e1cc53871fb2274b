"""The house gets smaller: how many lines each room may have. Who takes lines away lowers the number here."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLACK = 200  # lines that a budget may stand above its room
TESTS_MAX = 86_620
#: Lines of source by room; what lies beside the rooms is the room "".
BUDGET: dict[str, int] = {
    "": 1_070,
    "api": 2_590,
    "commands": 10,
    "commands/cli": 2_100,
    "commands/comparison": 210,
    "commands/info": 1_240,
    "commands/printing": 1_780,
    "commands/recorder": 1_710,
    "kernel": 5_810,
    "lake": 1_420,
    "lake/maintain": 1_980,
    "logs": 20,
    "logs/capture": 260,
    "logs/classic": 3_850,
    "logs/log": 6_140,
    "logs/player": 610,
    "logs/stages": 1_830,
    "logs/store": 4_460,
    "primary": 10,
    "primary/dialogue": 3_860,
    "primary/select": 2_810,
    "primary/server": 3_260,
    "primary/streaming": 3_170,
    "replication": 10,
    "replication/dump": 2_060,
    "replication/event": 6_110,
    "replication/wire": 1_980,
    "rows": 1_020,
    "rows/expr": 3_060,
    "schema": 6_180,
    "scorecard": 4_660,
    "spark": 1_710,
    "sqltext": 2_140,
    "storage": 10,
    "storage/codec": 140,
    "storage/disk": 2_180,
    "storage/ibb": 970,
    "tables": 10,
    "tables/arrow": 4_720,
    "tables/fold": 3_940,
    "testkit": 5_580,
}


def lines_of(folder: Path, endings: tuple[str, ...]) -> Counter[str]:
    """Lines of files by their room; what lies in no room is beside them."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.suffix in endings:
            parts = path.relative_to(folder).parts
            depth = 2 if (folder / Path(*parts[:2]) / "__init__.py").exists() else min(1, len(parts) - 1)
            found["/".join(parts[:depth])] += path.read_text().count("\n")
    return found


def test_no_room_has_grown_beyond_its_budget_and_no_budget_stands_far_above_its_room() -> None:
    rooms = lines_of(ROOT / "src" / "ibbmaster", (".py", ".c", ".h"))
    rooms["scorecard"] = lines_of(ROOT / "src" / "ibbmaster_scorecard", (".py",)).total()
    assert {room: lines for room, lines in rooms.items() if lines > BUDGET.get(room, 0)} == {}
    assert {room: rooms[room] for room, most in BUDGET.items() if most > rooms[room] + SLACK} == {}


def test_tests_grow_no_more_than_they_may() -> None:
    lines = lines_of(ROOT / "tests", (".py",)).total()
    assert TESTS_MAX - 2 * SLACK < lines <= TESTS_MAX
