"""Results of the scorecard that were never measured: every grade, gaps, hostile texts, and as many as one likes."""

import random
from pathlib import Path

from ibbmaster_scorecard.results import (
    Cell,
    Confirmation,
    ConsumerResult,
    FaultBytes,
    Grade,
    Results,
    Resume,
    ScenarioResult,
)

GTID_EVENT = "6a5f2c69a2030000002a000000ac0400000000660000000000000000000000080000000000000000000017d3a1c4"
EVENTS = ("GTID", "TABLE_MAP", "WRITE_ROWS_V1", "XID")
HOSTILE = """</script x><script>document.documentElement.dataset.hacked="yes"</script><!--<img src=x onerror=
"document.documentElement.dataset.hacked='yes'"> | `**bold**` {{title}} \u202e\x00 ]]> ' &lt;"""

TOML = Path(__file__).with_suffix(".toml").read_text()


def scenario(name: str, family: str = "cuts", **others: object) -> ScenarioResult:
    values: dict[str, object] = {
        "title": "The connection is cut between the GTID and the rows",
        "about": "A consumer that counts a group as done at its GTID never asks for its rows again.",
        "best": Grade.EXACT,
        "profile": "11.8",
        "faults": ("cut after gtid; gtid=0-3-102",),
        "toml": TOML,
        **others,
    }
    return ScenarioResult(name=name, family=family, **values)  # type: ignore[arg-type]


def consumer(name: str, **others: object) -> ConsumerResult:
    values: dict[str, object] = {
        "title": name,
        "package": f"{name} 1.2.3",
        "registry": "PyPI",
        "version": f"{name} 1.2.3, Python 3.11.2",
        **others,
    }
    return ConsumerResult(name=name, **values)  # type: ignore[arg-type]


def ran(consumer: str, scenario: str, grade: Grade, **others: object) -> Cell:
    changes = [f'change insert shop.orders {{"id": {number}, "total": "9.90"}}' for number in range(1, 4)]
    sent = [
        "connection 1: ROTATE",
        "connection 1: FORMAT_DESCRIPTION",
        *(f"connection 1: {event} 0-3-101" for event in EVENTS),
        "connection 1: GTID 0-3-102",
        "connection 2: FORMAT_DESCRIPTION",
        *(f"connection 2: {event} 0-3-102" for event in EVENTS),
        *(f"connection 2: {event} 0-3-103" for event in EVENTS),
    ]
    arrived = [
        *("begin 0-3-101", changes[0], "commit 0-3-101"),
        *("begin 0-3-102", changes[1], "commit 0-3-102"),
        *("begin 0-3-103", changes[2], "commit 0-3-103"),
    ]
    missing: tuple[str, ...] = ()
    if grade is Grade.LOSES_SILENTLY:
        arrived[3:6] = []
        missing = ("0-3-102 insert shop.orders id=2",)
    values: dict[str, object] = {
        "summary": "0-3-102 is missing (1 change)" if missing else f"{grade}, as it came out",
        "missing": missing,
        "sent": tuple(sent),
        "arrived": tuple(arrived),
        "resumes": (Resume(position="0-3-102" if missing else "0-3-101", after_s=0.213),),
        "recovered_s": 0.412,
        "seconds": 3.1,
        "statements": ("SET @slave_connect_state='0-3-101'", "SELECT @@server_id"),
        "bytes": (FaultBytes(fault="cut after gtid", gtid="0-3-102", sent_bytes=812, event=GTID_EVENT),),
        "log": "INFO connected to 127.0.0.1\nWARN lost connection, reconnecting\n",
        **others,
    }
    return Cell(consumer=consumer, scenario=scenario, grade=grade, **values)  # type: ignore[arg-type]


def every_kind() -> Results:
    """All grades, a consumer and a cell that were not run, a confirmation, and a loud loss that is the best."""
    lost = Confirmation(server="11.8.6-MariaDB", grade=Grade.LOSES_SILENTLY, summary="0-3-102 is missing")
    return Results(
        made="2026-11-22T14:00:00Z",
        ibbmaster="0.1.0",
        machine={"cores": 2, "python": "3.11.2", "system": "Linux 6.1"},
        consumers=(
            consumer("good-client"),
            consumer("bad-client", title="bad-client (the fork)", registry="Maven Central"),
            consumer("no-client", version="", not_run="zig is not on PATH"),
        ),
        scenarios=(
            scenario("cut-after-gtid"),
            scenario("cut-between-rows", title="The connection is cut between two row events of a group"),
            scenario("purged", "refusals", best=Grade.LOSES_LOUDLY, title="The position it asks for is purged"),
            scenario("half-event", "damage", title="An event is shorter than its header says"),
            scenario("stall", "silence", title="The primary says nothing for a while"),
            scenario("bad-crc", "damage", title="The checksum of a row event is wrong"),
            scenario("old-format", "formats", title="A server of 10.6 writes the log"),
        ),
        cells=(
            ran("good-client", "cut-after-gtid", Grade.EXACT),
            ran("good-client", "cut-between-rows", Grade.REPEATS_GROUPS, repeated=("0-3-102 insert id=2",)),
            ran("good-client", "purged", Grade.LOSES_LOUDLY, told=("1236: the binlog is gone",), restarts=3),
            ran("good-client", "half-event", Grade.LOSES_LOUDLY, told=("event too short",)),
            ran("good-client", "stall", Grade.EXACT),
            Cell(consumer="good-client", scenario="bad-crc", not_run="it reads by file and position only"),
            ran("bad-client", "cut-after-gtid", lost.grade, confirmed=lost),
            ran("bad-client", "cut-between-rows", Grade.REPEATS_PARTS),
            ran("bad-client", "purged", Grade.HANGS, restarts=0, recovered_s=None),
            ran("bad-client", "half-event", Grade.CRASHES, told=("java.lang.NullPointerException: x",), restarts=3),
            ran("bad-client", "stall", Grade.LOSES_SILENTLY),
            ran("bad-client", "bad-crc", Grade.EXACT),
            ran("bad-client", "old-format", Grade.EXACT),
        ),
    )


def hostile() -> Results:
    """Every text that comes from outside tries to be a program, or a part of the document."""
    lines = (HOSTILE, f"GTID {HOSTILE}")
    return Results(
        made=HOSTILE,
        ibbmaster=HOSTILE,
        machine={HOSTILE: HOSTILE},
        consumers=(
            consumer(HOSTILE, title=HOSTILE, package=HOSTILE, registry=HOSTILE, version=HOSTILE),
            consumer("not-run", not_run=HOSTILE, version=HOSTILE),
        ),
        scenarios=(
            scenario(HOSTILE, HOSTILE, title=HOSTILE, about=HOSTILE, profile=HOSTILE, faults=lines, toml=HOSTILE),
        ),
        cells=(
            ran(
                HOSTILE,
                HOSTILE,
                Grade.LOSES_SILENTLY,
                summary=HOSTILE,
                **dict.fromkeys(("missing", "repeated", "wrong", "told", "sent", "arrived", "statements"), lines),
                log=HOSTILE,
                resumes=(Resume(position=HOSTILE, after_s=1.0),),
                bytes=(FaultBytes(fault=HOSTILE, gtid=HOSTILE, sent_bytes=1, event="zz" + GTID_EVENT),),
                confirmed=Confirmation(server=HOSTILE, grade=Grade.EXACT, summary=HOSTILE),
            ),
        ),
    )


def many(scenario_count: int, consumer_count: int, seed: int = 1) -> Results:
    """A matrix of random grades, mostly good ones, with about as much in each cell as in a real one."""
    rng = random.Random(seed)
    kinds = ("cuts", "silence", "refusals", "damage", "order", "restarts", "formats", "types", "logins", "positions")
    scenarios = tuple(
        scenario(f"scenario-{n:03}", kinds[n * len(kinds) // scenario_count]) for n in range(scenario_count)
    )
    consumers = tuple(consumer(f"consumer-number-{n}") for n in range(consumer_count))
    weights = (70, 8, 4, 6, 3, 3, 2, 4)
    return Results(
        made="2026-11-22T14:00:00Z",
        ibbmaster="0.1.0",
        consumers=consumers,
        scenarios=scenarios,
        cells=tuple(
            ran(one.name, other.name, rng.choices(tuple(Grade), weights)[0], seconds=round(rng.uniform(1, 9), 3))
            for one in consumers
            for other in scenarios
        ),
    )
