"""Consumers as the scorecard sees them: MariaDB's own, adapters in Java, Go, Node and Rust, and this project's stream;
and a silent loss of one beside a real primary, too, which crashes and purges on cue.
"""

import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lanes.primary import login_of

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs, installed_versions
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.testkit.scenario import parse_scenario
from ibbmaster_scorecard.adapter import OURS, build, read_adapters
from ibbmaster_scorecard.cards import read_cards
from ibbmaster_scorecard.confirming import RealStage, confirm
from ibbmaster_scorecard.consumer import Consumer
from ibbmaster_scorecard.journal import ToldEvent
from ibbmaster_scorecard.results import Cell, Grade
from ibbmaster_scorecard.runner import run_card
from tests.case_table import data_beside
from tests.commands.recorder.test_recording import groups_of, wait_until
from tests.machinery.events import split_events


def adapter_module(adapter: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", OURS / adapter / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_DATA = data_beside(__file__)
CARDS = {card.name: card for card in read_cards()}
RUNS = [
    ("mariadb-10.11", "plain-11.8", Grade.EXACT),
    ("mariadb-11.8", "cut-after-gtid-12.3", Grade.EXACT),
    ("mariadb-11.8", "three-domains", Grade.EXACT),  # what is in front of its start it applies, and does not tell
    ("mariadb-binlog", "cut-after-gtid", Grade.EXACT),  # it ends, and is started again
    ("mariadb-binlog", "times", Grade.EXACT),
]


@pytest.mark.parametrize(("consumer", "card", "grade"), RUNS, ids=[f"{one[0]}-{one[1]}" for one in RUNS])
def test_a_consumer_of_mariadb_gets_through_a_scenario(consumer, card, grade):
    if not installed_versions() or consumer.removeprefix("mariadb-") not in (*installed_versions(), "binlog"):
        pytest.skip(f"no MariaDB that {consumer} needs")

    cell = run_card(read_adapters()[consumer], CARDS[card])

    assert cell.grade is grade, f"{cell.not_run}\n{cell.summary}\n{cell.log}"


PRINTED = [  # as the tool prints it, its type, the column as the metadata have it; what that means
    (text.encode("latin-1"), *rest) for text, *rest in _DATA["printed"]
]


@pytest.mark.parametrize(("printed", "kind", "declared", "value"), PRINTED, ids=lambda one: str(one)[:30])
def test_a_value_that_the_tool_prints_is_read_as_what_it_is(printed, kind, declared, value):
    assert adapter_module("mariadb-binlog", "printed").value_of(printed, kind, declared) == value


def test_a_stream_of_spark_tells_whole_groups_once(spark, tmp_path, monkeypatch):
    stream = adapter_module("ibbmaster-spark", "stream")
    told: list[tuple[str, object]] = []
    is_told = threading.Event()

    def tell(event: str, **given: Any) -> None:
        told.append((event, given.get("gtid") or given.get("kind")))
        if event == "position" and len(told) > 4:
            is_told.set()

    monkeypatch.setattr(stream, "tell", tell)
    with FixturePrimary(profile="11.8") as primary:
        orders = primary.table("shop.orders", id="int primary key", name="text")
        asked = {"start": str(primary.log.position), "server_id": 4001, "tls": False, "directory": str(tmp_path)}
        request = login_of(primary) | asked
        with primary.transaction(gtid="0-3-50"):
            orders.insert(id=1, name="a")
            orders.update({"id": 1}, name="b")
        with primary.transaction(gtid="0-3-51"):
            orders.delete(id=1)
        batches = stream.Batches(-1, 0, None)
        query = stream.start(spark, request, batches)
        try:
            assert is_told.wait(600), query.exception()
        finally:
            query.stop()
    groups = [one for one in told if one[0] != "position"]
    assert groups == [
        *[("begin", "0-3-50"), ("change", "insert"), ("change", "update"), ("commit", "0-3-50")],
        *[("begin", "0-3-51"), ("change", "delete"), ("commit", "0-3-51")],
    ]
    count = len(told)
    batches.take(None, batches.last)  # Spark may give the last batch again after a restart
    assert len(told) == count


one_java_at_a_time = pytest.mark.xdist_group("java-consumers")
NOT_HERE = ("needs ", "mvn ")  # no Java or Maven on this machine, or no way to what Maven fetches


def put_through(consumer: str, scenario: str) -> Cell:
    adapter = read_adapters()[consumer]
    try:
        build(adapter)
    except ConfigurationError as error:
        if str(error).startswith(NOT_HERE):
            pytest.skip(f"{consumer} cannot be built here: {error}")
        raise
    cell = run_card(adapter, CARDS[scenario])
    assert cell.not_run is None, cell.not_run
    return cell


@one_java_at_a_time
@pytest.mark.parametrize("consumer", ["connector-java", "connector-java-debezium", "debezium"])
def test_every_value_of_a_row_is_told_as_it_was_logged(consumer):
    cell = put_through(consumer, "numbers")
    assert cell.grade == Grade.EXACT, (cell.summary, cell.arrived, cell.told, cell.log[-2000:])


@one_java_at_a_time
def test_a_lost_connection_is_told_and_taken_up_again_by_the_library():
    cell = put_through("connector-java", "cut-after-gtid")
    assert cell.grade == Grade.EXACT, (cell.summary, cell.arrived, cell.told, cell.log[-2000:])
    assert cell.restarts == 0
    assert [resume.position for resume in cell.resumes] == ["0-3-101"]
    assert any("communication failure" in text for text in cell.told)


ADAPTERS = ("canal", "go-mysql", "mysql-cdc", "zongji", "zongji-by-file")
REPLICA = 4001
PATIENCE_S = 120.0
STEP_S = 0.2
COLUMNS = _DATA["columns"]  # how each is declared, and its value
COLUMNS["data"] = ("blob", b"\xff\x00")
VALUES = {name: value for name, (_, value) in COLUMNS.items()}
TOLD = VALUES | {"data": "0xff00", "big": str(2**63 - 5)}


@contextmanager
def following(name: str, primary: FixturePrimary, directory: Path, **request: Any) -> Iterator[Consumer]:
    adapter = read_adapters()[name]
    try:
        command = build(adapter)
    except ConfigurationError as error:
        pytest.skip(f"{name} cannot be built here: {error}")
    asked = login_of(primary) | {"server_id": REPLICA, "tls": False, "directory": str(directory)}
    asked |= {"start": "", "resume": None, "delay_ms": 0}
    with closing(Consumer(command, asked | request, directory=directory)) as consumer:
        yield consumer


def told_until(consumer: Consumer, last_kind: str | None) -> list[ToldEvent]:
    """What it tells, up to the first change of a kind and the position behind that; or to its end."""
    found: list[ToldEvent] = []
    for _ in range(int(PATIENCE_S / STEP_S)):
        found += consumer.events(STEP_S)
        kinds = [event.kind if event.what == "change" else "" for event in found]
        if last_kind in kinds and any(event.what == "position" for event in found[kinds.index(last_kind) :]):
            return found
        if consumer.has_ended:
            break
    if last_kind is None and consumer.has_ended:
        return found + consumer.close()
    raise AssertionError(f"{[str(event) for event in found]}; {consumer.problem or consumer.log[-2000:]}")


def as_text(image: Any) -> Any:
    """Libraries differ in whether a large number is a text."""
    return image and {name: str(value) if name == "big" else value for name, value in image.items()}


@pytest.fixture
def primary() -> Iterator[FixturePrimary]:
    with FixturePrimary(profile="11.8", server_id=3, user="follower", password="of a test") as primary:
        yield primary


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_tells_each_change_with_its_values_and_its_group(name, primary, tmp_path):
    table = primary.table("shop.things", **{name: kind for name, (kind, _) in COLUMNS.items()})
    start = str(primary.log.position)

    with following(name, primary, tmp_path, start=start) as consumer:
        with primary.transaction():
            table.insert(VALUES)
            table.update({"id": -7}, tiny=5)
        table.delete(id=-7)
        told = told_until(consumer, "delete")
        assert not consumer.has_ended
        told += consumer.close(PATIENCE_S)

    assert consumer.exit_code == 0, "the end of its input is the end of its work"
    assert told[0].what == "version"
    assert [event.gtid for event in told if event.what == "begin"] == ["0-3-3", "0-3-4"]
    assert [event.gtid for event in told if event.what == "commit"] == ["0-3-3", "0-3-4"]
    changes = [event for event in told if event.what == "change"]
    assert [(event.table, event.kind) for event in changes] == [
        ("shop.things", kind) for kind in ("insert", "update", "delete")
    ]
    first, second = TOLD, TOLD | {"tiny": 5}
    assert [(as_text(event.before), as_text(event.after)) for event in changes] == [
        (None, first),
        (first, second),
        (second, None),
    ]


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_goes_on_behind_the_position_it_printed(name, primary, tmp_path):
    table = primary.table("shop.things", id="int primary key")
    start = str(primary.log.position)
    table.insert(id=1)
    with following(name, primary, tmp_path, start=start) as consumer:
        told = told_until(consumer, "insert")
    position = [event.position for event in told if event.what == "position"][-1]

    table.delete(id=1)
    with following(name, primary, tmp_path, start=start, resume=position) as consumer:
        told = told_until(consumer, "delete")

    assert [event.kind for event in told if event.what == "change"] == ["delete"]
    assert [event.text for event in told if event.what == "error"] == []


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_tells_the_error_of_a_server_and_ends(name, primary, tmp_path):
    primary.fault("before dump", action="error", code=1236, text="Nothing to dump")

    with following(name, primary, tmp_path, start="0-3-1") as consumer:
        told = told_until(consumer, None)

    (error,) = [event for event in told if event.what == "error"]
    assert consumer.exit_code == 1
    assert (error.is_fatal, error.is_internal) == (True, False)
    assert "Nothing to dump" in error.text


@pytest.fixture
def real_server() -> None:
    try:
        find_programs("11.8")
    except ProgramsMissingError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("real_server")
@pytest.mark.parametrize("name", ["compressed", "cut-between-statements"])
def test_a_consumer_gets_the_same_grade_beside_a_real_primary(name):
    adapter = read_adapters()["python-mysql-replication"]
    cell = run_card(adapter, CARDS[name])
    assert cell.not_run is None
    found, reason = confirm(adapter, CARDS[name])
    assert reason == ""
    assert "11.8" in found.server
    assert (found.grade, found.summary) == (cell.grade, cell.summary)
    if name == "compressed":
        assert found.grade is Grade.LOSES_SILENTLY


SHOP = """
[primary]
profile = "11.8"
server_id = 3
compressed = true
[tables]
"shop.orders" = {id = "int primary key", note = "varchar(200)"}
[[group]]
changes = [{insert = "shop.orders", values = {id = 1, note = "some words that are long enough to be compressed"}}]
"""


@pytest.mark.usefixtures("real_server")
def test_a_real_primary_has_the_groups_crashes_and_purges():
    with RealStage("11.8").serving(parse_scenario(SHOP)) as primary:
        groups = partial(groups_of, primary.port, user=primary.user, password=primary.password)
        first = groups()
        assert list(first) == ["0-3-1", "0-3-2", "0-3-3"]
        assert 0xA6 in {data[4] for data in split_events(first["0-3-3"])}  # WRITE_ROWS_COMPRESSED_V1
        primary.faults.act(PlannedFault.of({"at": 0.0, "action": "crash"}))
        assert groups() == first
        primary.table("shop.orders").insert(id=2)
        position = str(primary.log.position)
        wait_until(lambda: "0-3-4" in groups())
        primary.faults.act(PlannedFault.of({"at": 0.0, "action": "purge"}))
        primary.table("shop.orders").insert(id=3)
        wait_until(lambda: [*groups(position)] == ["0-3-5"])
        assert [record.problem for record in primary.faults.done] == ["", ""]
