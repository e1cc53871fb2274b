"""MariaDB's own consumers, some in Java and this project's stream as the scorecard sees them."""

import importlib.util
import json
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lanes.primary import login_of

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster_scorecard.adapter import OURS, build, read_adapters
from ibbmaster_scorecard.cards import read_cards
from ibbmaster_scorecard.grade import Grade
from ibbmaster_scorecard.results import Cell
from ibbmaster_scorecard.runner import run_card


def adapter_module(adapter: str, name: str) -> ModuleType:
    """One program of an adapter, without running it."""
    spec = importlib.util.spec_from_file_location(f"adapter_{name}", OURS / adapter / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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
    (text.encode("latin-1"), *rest) for text, *rest in json.loads(Path(__file__).with_suffix(".json").read_text())
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
