"""The scenarios of the scorecard: a log, what is written to it while a consumer follows, and what goes wrong. In
`cards/*.toml`, `workloads.toml` says what is written; every other file is a family of cards: scenarios as for
`ibbmaster serve --scenario`, with a name, a sentence, and the best grade of a right consumer."""

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.testkit.fault import table_of
from ibbmaster.testkit.given import expect, naming, only, parsed, read, toml_lines, toml_value
from ibbmaster.testkit.scenario import Scenario, scenario_of
from ibbmaster.testkit.written import WrittenGroup, repeated_groups
from .results import Grade

SERVER_ID = 3
PROFILE = "11.8"
DELAY_MS_MAX = 10_000
_KEYS = ("name", "title", "workload", "best", "faults", "primary", "consumer", "expected")
_WORKLOAD_KEYS = ("tables", "before", "groups")
_CONSUMER_KEYS = ("start", "delay_ms", "tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A scenario that consumers are put through.

    Attributes:
        faults: each as a line.
        workload: what is written, as in the file: `tables`, `before`, `groups`.
        start: where a consumer begins; None: after what exists before it comes.
        delay_ms: between two of its events.
        asks_tables: it is to tell columns, keys and types of tables, too.
        expected: the GTIDs to deliver, in order; None: everything that is written live.
    """

    name: str
    title: str
    family: str
    about: str = ""
    best: Grade = Grade.EXACT
    faults: tuple[str, ...] = ()
    primary: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None
    delay_ms: int = 0
    asks_tables: bool = False
    expected: tuple[str, ...] | None = None

    @property
    def profile(self) -> str:
        return str(self.primary["profile"])

    def scenario(self) -> Scenario:
        """Raises ConfigurationError: something in it means nothing."""
        return scenario_of(self._tables(self.workload.get("before", [])))

    def live_groups(self) -> tuple[WrittenGroup, ...]:
        """Raises ConfigurationError: something in it means nothing."""
        return tuple(map(WrittenGroup.of, repeated_groups(self.workload["groups"])))

    def toml(self) -> str:
        tables = self._tables([*self.workload.get("before", []), *self.workload["groups"]])
        lines = [f"# {self.title}", "", "[primary]", *toml_lines(tables["primary"]), "", "[tables]"]
        lines += toml_lines(tables["tables"])
        for key in ("group", "fault"):
            for table in tables[key]:
                lines += ["", f"[[{key}]]", *_lines_of(table)]
        return "\n".join(lines) + "\n"

    def _tables(self, groups: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        faults = []
        for number, line in enumerate(self.faults, 1):
            with naming(f"fault {number}"):
                faults.append(table_of(line))
        return {
            "primary": {"server_id": SERVER_ID, **self.primary},
            "tables": self.workload.get("tables", {}),
            "group": list(groups),
            "fault": faults,
        }


@functools.cache
def read_cards() -> tuple[Card, ...]:
    """Errors as `parse_cards`."""
    directory = resources.files("ibbmaster_scorecard") / "cards"
    texts = {entry.name: entry.read_text("utf-8") for entry in directory.iterdir() if entry.name.endswith(".toml")}
    return parse_cards(texts.pop("workloads.toml"), texts)


def parse_cards(workloads: str, families: Mapping[str, str]) -> tuple[Card, ...]:
    """Raises ConfigurationError: one of them means nothing; the text names it."""
    with naming("workloads.toml"):
        given = parsed("TOML", tomllib.loads, workloads)
        only("", given, ("workload",))
        known = expect("workload", dict, given.get("workload", {}))
        for name, workload in known.items():
            only(name, expect(name, dict, workload), _WORKLOAD_KEYS)
    cards: dict[str, Card] = {}
    for file_name, text in sorted(families.items()):
        with naming(file_name):
            family = parsed("TOML", tomllib.loads, text)
            only("", family, ("family", "about", "card"))
            for number, table in enumerate(expect("card", list, family.get("card", [])), 1):
                with naming(f"card {number}"):
                    card = _card(expect("card", dict, table), family, known)
                    if card.name in cards:
                        raise ConfigurationError(f"there are two cards {card.name!r}")
                    cards[card.name] = card
    return tuple(cards.values())


def _card(given: Mapping[str, Any], family: Mapping[str, Any], workloads: Mapping[str, Any]) -> Card:
    only("", given, _KEYS)
    workload = expect("workload", str, given.get("workload"))
    if workload not in workloads:
        raise ConfigurationError(f"workload {workload!r}: expected one of {', '.join(workloads)}")
    consumer = expect("consumer", dict, given.get("consumer", {}))
    only("consumer", consumer, _CONSUMER_KEYS)
    table = {key: value for key, value in given.items() if key not in ("workload", "consumer")}
    table |= {"asks_tables" if key == "tables" else key: value for key, value in consumer.items()}
    table |= {"family": None} | {key: value for key, value in family.items() if key != "card"}
    card: Card = read("", Card, table, workload=workloads[workload])
    if not 0 <= card.delay_ms <= DELAY_MS_MAX:
        raise ConfigurationError(f"delay_ms {card.delay_ms}: expected 0 to {DELAY_MS_MAX}")
    card = replace(
        card,
        primary={"profile": PROFILE, **card.primary},
        start=None if card.start is None else str(GtidPosition.parse(card.start)),
        expected=None if card.expected is None else tuple(str(Gtid.parse(gtid)) for gtid in card.expected),
    )
    card.scenario()
    card.live_groups()
    return card


def _lines_of(table: Mapping[str, Any]) -> list[str]:
    lines = toml_lines({key: value for key, value in table.items() if key != "changes"})
    if "changes" in table:
        lines += ["changes = [", *(f"  {toml_value(change)}," for change in table["changes"]), "]"]
    return lines
