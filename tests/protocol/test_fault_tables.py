"""The tables of docs/faults.md say what the code has: places, actions, versions, questions, keys."""

import dataclasses
import re
from pathlib import Path

import pytest

from ibbmaster.testkit.action import ACTIONS, UNANSWERED, FaultAction
from ibbmaster.testkit.certificates import CERTIFICATES
from ibbmaster.testkit.control import QUESTIONS
from ibbmaster.testkit.malformed import MALFORMATIONS
from ibbmaster.testkit.place import LANDMARKS, Side
from ibbmaster.testkit.primary import VERSIONS
from ibbmaster.testkit.scenario import parse_scenario
from tests.protocol.documents import rows_under

GUIDE = Path(__file__).parents[2] / "docs" / "faults.md"


def where(kind: type[FaultAction]) -> str:
    places = [" ".join(side.value for side in Side if side in kind.sides)] if kind.sides else []
    if kind.in_conversation:
        answered = "answers" if kind.not_at > UNANSWERED else "answers, login"
        places.append(answered if kind.not_at else "any step")
    return ", ".join(places)


KEYS = {kind: ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind)) or "-" for kind in ACTIONS.values()}
TABLES = {
    "Places": [
        [f"`{landmark.value}`", " ".join(side.value for side in Side if side in sides), text]
        for landmark, (sides, text) in LANDMARKS.items()
    ],
    "Actions": [
        [f"`{word}`", KEYS[kind], where(kind), " ".join((kind.__doc__ or "").split())] for word, kind in ACTIONS.items()
    ],
    "Malformed events": [[f"`{how}`"] for how in MALFORMATIONS],
    "Versions": [[f"`{name}`", f"`{profile}`", f"`{version}`"] for name, (profile, version) in VERSIONS.items()],
    "Certificates": [[f"`{name}`", said.meaning] for name, said in CERTIFICATES.items()],
    "Control socket": [[f"`{question}`"] for question in QUESTIONS],
}


@pytest.mark.parametrize("heading", TABLES)
def test_the_first_columns_of_a_table_are_those_of_the_code(heading: str) -> None:
    wanted = TABLES[heading]
    assert [row[: len(wanted[0])] for row in rows_under("docs/faults.md", heading)] == wanted


def test_the_scenario_that_is_shown_is_one() -> None:
    shown = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert shown
    for text in shown:
        with parse_scenario(text).serving() as primary:
            primary.verify()
