"""The adapters of consumers in Java tell what was logged, and go on behind what they lost."""

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.scorecard.adapter import build, read_adapters
from ibbmaster.scorecard.cards import read_cards
from ibbmaster.scorecard.grade import Grade
from ibbmaster.scorecard.results import Cell
from ibbmaster.scorecard.runner import run_card

CONSUMERS = ("connector-java", "connector-java-debezium", "debezium")
NOT_HERE = ("needs ", "mvn ")  # no Java or Maven on this machine, or no way to what Maven fetches

pytestmark = pytest.mark.xdist_group("java-consumers")  # one Java at a time


def put_through(consumer: str, scenario: str) -> Cell:
    adapter = read_adapters()[consumer]
    try:
        build(adapter)
    except ConfigurationError as error:
        if str(error).startswith(NOT_HERE):
            pytest.skip(f"{consumer} cannot be built here: {error}")
        raise
    cell = run_card(adapter, next(card for card in read_cards() if card.name == scenario))
    assert cell.not_run is None, cell.not_run
    return cell


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_value_of_a_row_is_told_as_it_was_logged(consumer):
    cell = put_through(consumer, "numbers")
    assert cell.grade == Grade.EXACT, (cell.summary, cell.arrived, cell.told, cell.log[-2000:])


def test_a_lost_connection_is_told_and_taken_up_again_by_the_library():
    cell = put_through("connector-java", "cut-after-gtid")
    assert cell.grade == Grade.EXACT, (cell.summary, cell.arrived, cell.told, cell.log[-2000:])
    assert cell.restarts == 0
    assert [resume.position for resume in cell.resumes] == ["0-3-101"]
    assert any("communication failure" in text for text in cell.told)
