"""The tables of docs/faults.md say what the code has: places, actions, versions, questions, keys."""

import dataclasses
import re
from pathlib import Path

from ibbmaster.testkit.action import ACTIONS, UNANSWERED, FaultAction
from ibbmaster.testkit.certificates import CERTIFICATES
from ibbmaster.testkit.control import QUESTIONS
from ibbmaster.testkit.malformed import MALFORMATIONS
from ibbmaster.testkit.place import LANDMARKS, Side
from ibbmaster.testkit.scenario import parse_scenario
from ibbmaster.testkit.versions import VERSIONS

GUIDE = Path(__file__).parents[2] / "docs" / "faults.md"


def table(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading."""
    section = GUIDE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [row for row in rows[1:] if set(row[0]) != {"-"}]


def place_rows() -> list[list[str]]:
    return [
        [f"`{landmark.value}`", " ".join(side.value for side in Side if side in sides), text]
        for landmark, (sides, text) in LANDMARKS.items()
    ]


def action_rows() -> list[list[str]]:
    return [[f"`{word}`", keys_of(kind), where(kind), text_of(kind)] for word, kind in ACTIONS.items()]


def keys_of(kind: type[FaultAction]) -> str:
    return ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind)) or "-"


def where(kind: type[FaultAction]) -> str:
    places = [" ".join(side.value for side in Side if side in kind.sides)] if kind.sides else []
    if kind.in_conversation:
        answered = "answers" if kind.not_at > UNANSWERED else "answers, login"
        places.append(answered if kind.not_at else "any step")
    return ", ".join(places)


def text_of(kind: type[FaultAction]) -> str:
    return " ".join((kind.__doc__ or "").split())


def test_places_are_those_of_the_code() -> None:
    assert table("Places") == place_rows()


def test_actions_are_those_of_the_code() -> None:
    assert table("Actions") == action_rows()


def test_malformed_events_are_those_of_the_code() -> None:
    assert [row[0] for row in table("Malformed events")] == [f"`{how}`" for how in MALFORMATIONS]


def test_versions_are_those_of_the_code() -> None:
    assert [row[:3] for row in table("Versions")] == [
        [f"`{name}`", f"`{profile}`", f"`{version}`"] for name, (profile, version) in VERSIONS.items()
    ]


def test_certificates_are_those_of_the_code() -> None:
    assert table("Certificates") == [[f"`{name}`", said.meaning] for name, said in CERTIFICATES.items()]


def test_questions_are_those_of_the_code() -> None:
    assert [row[0] for row in table("Control socket")] == [f"`{question}`" for question in QUESTIONS]


def test_the_scenario_that_is_shown_is_one() -> None:
    shown = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(shown) >= 1
    for text in shown:
        with parse_scenario(text).serving() as primary:
            primary.verify()
