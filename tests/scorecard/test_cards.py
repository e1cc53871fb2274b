import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.scenario import parse_scenario
from ibbmaster_scorecard.cards import parse_cards, read_cards
from ibbmaster_scorecard.results import Grade

CARDS = read_cards()
WORKLOADS = (
    '[workload.one]\ntables = {"t.a" = {a = "int"}}\ngroups = [{changes = [{insert = "t.a", values = {a = 1}}]}]'
)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_card_is_the_scenario_that_its_file_serves(card):
    with card.scenario().serving() as primary:
        before = primary.log.position
        gtids = [str(gtid) for group in card.live_groups() if (gtid := group.write(primary)) is not None]
        assert set(card.expected or ()) <= set(gtids)
        position, faults = str(primary.log.position), primary.faults.pending
        assert card.start is None or len(card.start) == 0 or str(before) != card.start
    with parse_scenario(card.toml()).serving() as again:
        assert str(again.log.position) == position
        assert again.faults.pending == faults


def test_they_are_many_with_names_and_sentences_and_a_best_grade():
    assert len(CARDS) > 60
    actions = {line.split()[0] for card in CARDS for line in card.faults}
    assert {"cut", "stall", "drip", "eof", "error", "kill", "alter", "drop", "repeat", "swap", "crash"} <= actions
    assert {card.profile for card in CARDS} >= {"10.6", "10.11", "11.4", "11.8", "12.3"}
    assert len({card.title for card in CARDS}) == len({card.name for card in CARDS}) == len(CARDS)
    for card in CARDS:
        assert card.title[0].isupper()
        assert card.title.endswith("."), card.title
    best = {card.name: card.best for card in CARDS}
    assert best["cut-after-gtid"] is Grade.EXACT
    assert best["position-purged"] is Grade.LOSES_LOUDLY


@pytest.mark.parametrize(
    ("workloads", "families", "text"),
    [
        ("nothing", {}, "workloads.toml: no TOML"),
        ("[workload.a]\nspeed = 1", {}, "workloads.toml: a: 'speed' means nothing here"),
        (WORKLOADS, {"a.toml": "[[card]]\nname = 'x'"}, "a.toml: card 1: workload None"),
        (WORKLOADS, {"a.toml": "card = 5"}, "a.toml: card 5: expected a list"),
        (WORKLOADS, {"a.toml": "family = 'a'\n[[card]]\nname='x'\ntitle='x'\nworkload='two'"}, "expected one of one"),
        (WORKLOADS, {"a.toml": "[[card]]\nname='x'\ntitle='x'\nworkload='one'"}, "a.toml: card 1: family None"),
    ],
)
def test_a_card_that_means_nothing_is_named(workloads, families, text):
    with pytest.raises(ConfigurationError) as caught:
        parse_cards(workloads, families)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("faults = ['break before gtid']", "a.toml: card 1: fault"),
        ("best = 'perfect'", "'perfect'"),
        ("consumer = {delay_ms = -1}", "delay_ms -1: expected 0 to 10000"),
        ("consumer = {start = '0-1'}", "0-1"),
        ("expected = ['all']", "all"),
        ("primary = {profile = 5}", "primary.profile 5: expected a text"),
        ("colour = 'red'", "'colour' means nothing here"),
    ],
)
def test_a_line_of_a_card_that_means_nothing_is_named(line, text):
    family = f"family = 'a'\n[[card]]\nname = 'x'\ntitle = 'X.'\nworkload = 'one'\n{line}"
    with pytest.raises(ConfigurationError) as caught:
        parse_cards(WORKLOADS, {"a.toml": family})
    assert text in str(caught.value)


def test_two_cards_of_one_name_are_refused():
    card = "[[card]]\nname = 'x'\ntitle = 'X.'\nworkload = 'one'\n"
    with pytest.raises(ConfigurationError, match="two cards 'x'"):
        parse_cards(WORKLOADS, {"a.toml": f"family = 'a'\n{card}", "b.toml": f"family = 'b'\n{card}"})
