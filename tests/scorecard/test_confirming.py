import dataclasses
import types

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.clock import FixtureClock
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS
from ibbmaster.testkit.witness import Witness
from ibbmaster_scorecard.cards import Card, read_cards
from ibbmaster_scorecard.confirming import SERVERS, _RealFaults, confirm, why_not
from tests.case_table import data_beside

CARD = next(card for card in read_cards() if card.name == "cut-after-gtid")

NOT_DONE = data_beside(__file__)


@pytest.mark.parametrize(("changes", "reason"), NOT_DONE.values(), ids=NOT_DONE)
def test_what_a_real_server_cannot_do_is_said(changes, reason):
    card = dataclasses.replace(CARD, **changes)
    assert reason in why_not(card)
    assert confirm(None, card) == (None, why_not(card))  # no consumer is started


def test_every_other_scenario_can_be_run_beside_a_packaged_server():
    possible = [card for card in read_cards() if not why_not(card)]
    assert CARD in possible
    assert {SERVERS[card.profile] for card in possible} == set(MARIADB_VERSIONS)
    assert all(isinstance(card, Card) for card in possible)


def test_a_relay_that_cannot_listen_is_an_error_and_no_wait(monkeypatch):
    async def listen_on(host, port):
        raise ConfigurationError("cannot listen on 127.0.0.1:0: no port is left")

    monkeypatch.setattr("ibbmaster_scorecard.confirming.listen_on", listen_on)
    faults = _RealFaults(0, types.SimpleNamespace(port=1))
    with (
        pytest.raises(ConfigurationError, match="the relay to a real server: cannot listen on 127"),
        faults.relaying(Witness(FixtureClock(), faults)),
    ):
        pass
