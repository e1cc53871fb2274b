"""A silent loss of a consumer is one beside a real primary, too, which crashes and purges on cue."""

import pytest

from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs
from ibbmaster.testkit.scenario import parse_scenario
from ibbmaster_scorecard.adapter import read_adapters
from ibbmaster_scorecard.cards import read_cards
from ibbmaster_scorecard.confirming import RealStage, confirm
from ibbmaster_scorecard.grade import Grade
from ibbmaster_scorecard.runner import run_card
from tests.commands.recorder.test_recording import groups_of, wait_until
from tests.machinery.events import split_events

CARDS = {card.name: card for card in read_cards()}


@pytest.fixture(autouse=True)
def real_server():
    try:
        find_programs("11.8")
    except ProgramsMissingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ["compressed", "cut-between-statements"])
def test_a_consumer_gets_the_same_grade_beside_a_real_primary(name):
    adapter = read_adapters()["python-mysql-replication"]
    cell = run_card(adapter, CARDS[name])
    assert cell.not_run is None
    found, reason = confirm(adapter, CARDS[name])
    assert reason == ""
    assert found is not None
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


def test_a_real_primary_has_the_groups_crashes_and_purges():
    with RealStage("11.8").serving(parse_scenario(SHOP)) as primary:
        first = groups_of(primary.port, user=primary.user, password=primary.password)
        assert list(first) == ["0-3-1", "0-3-2", "0-3-3"]
        assert 0xA6 in {data[4] for data in split_events(first["0-3-3"])}  # WRITE_ROWS_COMPRESSED_V1
        primary.faults.act(PlannedFault.of({"at": 0.0, "action": "crash"}))
        assert groups_of(primary.port, user=primary.user, password=primary.password) == first
        primary.table("shop.orders").insert(id=2)
        position = str(primary.log.position)
        wait_until(lambda: "0-3-4" in groups_of(primary.port, user=primary.user, password=primary.password))
        primary.faults.act(PlannedFault.of({"at": 0.0, "action": "purge"}))
        primary.table("shop.orders").insert(id=3)
        wait_until(
            lambda: list(groups_of(primary.port, position, user=primary.user, password=primary.password)) == ["0-3-5"]
        )
        assert [record.problem for record in primary.faults.done] == ["", ""]
