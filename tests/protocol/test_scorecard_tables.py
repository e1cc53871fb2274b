"""The tables of protocol/scorecard/adapters.md say what the code has: keys, lines, grades."""

import dataclasses
import functools
import inspect
import re
from pathlib import Path
from typing import get_type_hints

from ibbmaster_scorecard import runner
from ibbmaster_scorecard.adapter import STARTS, Adapter, read_adapters
from ibbmaster_scorecard.consumer import FATAL_S, RESTARTS_S, Supervised
from ibbmaster_scorecard.grade import Grade
from ibbmaster_scorecard.journal import TOLD
from tests.protocol.documents import rows_under

PAGE = Path(__file__).parents[2] / "protocol" / "scorecard" / "adapters.md"
TYPES = {str: "text", float: "number"}  # others are lists


table = functools.partial(rows_under, "protocol/scorecard/adapters.md")


def marked(key: str) -> str:
    return f"`{key[:-1]}`?" if key.endswith("?") else f"`{key}`"


def test_keys_of_an_adapter_are_those_of_the_code() -> None:
    hints = get_type_hints(Adapter)
    of_file = [one for one in dataclasses.fields(Adapter) if one.name not in ("name", "directory")]
    keys = {one.name: one.name if one.default is dataclasses.MISSING else f"{one.name}?" for one in of_file}
    rows = [[marked(key), TYPES.get(hints[name], "list")] for name, key in keys.items()]
    assert [row[:2] for row in table("adapter.toml")] == rows
    (start,) = (row[2] for row in table("adapter.toml") if row[0] == "`start`?")
    assert re.findall(r"`(\w+)`", start) == list(STARTS)


def test_what_it_is_asked_is_what_the_code_asks() -> None:
    keys = {key for row in table("What it is asked") for key in re.findall(r"`(\w+)`", row[0])}
    asked = inspect.getsource(runner._Run._request) + inspect.getsource(Supervised.start)

    assert keys == set(re.findall(r'"(\w+)": ', asked))


def test_lines_are_those_of_the_code() -> None:
    rows = [[f"`{what}`", ", ".join(map(marked, keys))] for what, keys in TOLD.items()]

    assert [row[:2] for row in table("What it prints")] == rows


def test_grades_and_their_meanings_are_those_of_the_code() -> None:
    assert table("Grades") == [[grade.value, grade.meaning] for grade in Grade]


def test_times_are_those_of_the_code() -> None:
    text = " ".join(PAGE.read_text().split())
    first, second, third = RESTARTS_S
    assert f"up to three times, after {first:g}, {second:g} and {third:g} seconds" in text
    assert f"or is ended {FATAL_S:g} s later" in text
    assert (runner.SILENCE_S, runner.SILENCE_PER_START) == (12.0, 4.0)


def test_every_adapter_of_ours_says_its_version() -> None:
    assert [adapter.name for adapter in read_adapters().values() if len(adapter.package.split()) < 2] == []
