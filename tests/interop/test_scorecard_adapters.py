"""Adapters in Go, Node and Rust tell what a primary logged; they are built once, into the cache of the user."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lanes.primary import login_of

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit import FixturePrimary
from ibbmaster_scorecard.adapter import build, read_adapters
from ibbmaster_scorecard.consumer import Consumer
from ibbmaster_scorecard.journal import ToldEvent

ADAPTERS = ("canal", "go-mysql", "mysql-cdc", "zongji", "zongji-by-file")
REPLICA = 4001
PATIENCE_S = 120.0
STEP_S = 0.2
COLUMNS = json.loads(Path(__file__).with_suffix(".json").read_text())  # how each is declared, and its value
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
    asked = {
        **login_of(primary),
        "server_id": REPLICA,
        "tls": False,
        "directory": str(directory),
        "start": "",
        "resume": None,
        "delay_ms": 0,
    }
    with Consumer(command, asked | request, directory=directory) as consumer:
        yield consumer


def told_until(consumer: Consumer, is_last: Callable[[ToldEvent], bool]) -> list[ToldEvent]:
    """What it tells, up to what is the last and the position behind that."""
    found: list[ToldEvent] = []
    for _ in range(int(PATIENCE_S / STEP_S)):
        found += consumer.events(STEP_S)
        last = next((number for number, event in enumerate(found) if is_last(event)), len(found))
        if any(event.what == "position" for event in found[last:]):
            return found
        if consumer.has_ended:
            break
    raise AssertionError(f"{[str(event) for event in found]}; {consumer.problem or consumer.log[-2000:]}")


def is_change(kind: str, event: ToldEvent) -> bool:
    return event.what == "change" and event.kind == kind


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
        told = told_until(consumer, partial(is_change, "delete"))
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
        told = told_until(consumer, partial(is_change, "insert"))
    position = [event.position for event in told if event.what == "position"][-1]

    table.delete(id=1)
    with following(name, primary, tmp_path, start=start, resume=position) as consumer:
        told = told_until(consumer, partial(is_change, "delete"))

    assert [event.kind for event in told if event.what == "change"] == ["delete"]
    assert [event.text for event in told if event.what == "error"] == []


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_tells_the_error_of_a_server_and_ends(name, primary, tmp_path):
    primary.fault("before dump", action="error", code=1236, text="Nothing to dump")

    with following(name, primary, tmp_path, start="0-3-1") as consumer:
        told = told_until_end(consumer)

    (error,) = [event for event in told if event.what == "error"]
    assert consumer.exit_code == 1
    assert (error.is_fatal, error.is_internal) == (True, False)
    assert "Nothing to dump" in error.text


def told_until_end(consumer: Consumer) -> list[ToldEvent]:
    found: list[ToldEvent] = []
    for _ in range(int(PATIENCE_S / STEP_S)):
        found += consumer.events(STEP_S)
        if consumer.has_ended:
            return found + consumer.close()
    raise AssertionError(f"it did not end: {[str(event) for event in found]}")
