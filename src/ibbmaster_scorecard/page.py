"""Results as one HTML page: no network, no other file; what consumers said can neither run nor break out of it.

`page.html` is the page with places like `{{matrix}}`, its style and its program. The matrix is written here, so that
the page can be read and printed without a program; what a cell shows is in the page as JSON.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ibbmaster.replication.event.types import EventType
from .matrix import LOOKS, cells_by_place, counted, families, is_best, look_name, plain, score, tally
from .results import Cell, ConsumerResult, Grade, Results, ScenarioResult

EVENT_BYTES_MAX = 4096  # of the event at a fault that a page shows
_TEMPLATE = Path(__file__).with_name("page.html")
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_SCRIPT = re.compile(r"<script>(.*)</script>", re.DOTALL)
_GRADES: tuple[Grade | None, ...] = (*Grade, None)
_LINES = ("missing", "repeated", "wrong", "metadata", "told", "sent", "arrived", "statements")


def render(results: Results) -> str:
    template = _TEMPLATE.read_text(encoding="utf-8")
    program = _SCRIPT.search(template)
    assert program, "page.html has a program"
    texts = {
        "program_hash": base64.b64encode(hashlib.sha256(program[1].encode()).digest()).decode(),
        "colours": _colours(dark=False),
        "dark_colours": _colours(dark=True),
        "facts": _facts(results),
        "legend": _legend(results),
        "matrix": _matrix(results),
        "data": _data(results),
    }
    return _PLACE.sub(lambda place: texts[place[1]], template)


def _text(text: str) -> str:
    return escape(plain(text))


def _colours(*, dark: bool) -> str:
    looks = ((look_name(grade), LOOKS[grade]) for grade in _GRADES)
    return " ".join(
        f"--{name}: {look.dark_ground if dark else look.ground}; --{name}-ink: {look.dark_ink if dark else look.ink};"
        for name, look in looks
    )


def _facts(results: Results) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    runs = sum(cell.grade is not None for cell in results.cells)
    facts = (
        counted(len(results.scenarios), "scenario"),
        counted(len(results.consumers), "consumer"),
        counted(runs, "run"),
        results.made,
        f"ibbmaster {results.ibbmaster}",
        machine,
    )
    return " · ".join(_text(fact) for fact in facts if fact)


def _legend(results: Results) -> str:
    counts = Counter(cell.grade for cell in cells_by_place(results).values())
    return "\n".join(
        f'<button type="button" class="chip {look_name(grade)}" data-grade="{number}" aria-pressed="false"'
        f' title="{_text(grade.meaning if grade else "It could not be run; its cell says why.")}">'
        f"<b>{LOOKS[grade].symbol}</b> {grade or 'not run'} <span>{counts[grade]}</span></button>"
        for number, grade in enumerate(_GRADES)
    )


def _matrix(results: Results) -> str:
    cells = cells_by_place(results)
    columns = "".join(_head(consumer, results) for consumer in results.consumers)
    rows = [f'<thead><tr><th scope="col" class="corner">Scenario</th>{columns}</tr></thead>']
    numbers = {scenario.name: number for number, scenario in enumerate(results.scenarios)}
    for family, scenarios in families(results).items():
        rows.append(
            f'<tbody data-family="{_text(family)}"><tr class="family"><th scope="rowgroup"'
            f' colspan="{len(results.consumers) + 1}">'
            f"<span>{_text(family)} <small>{len(scenarios)}</small></span></th></tr>"
        )
        rows += [_row(scenario, numbers[scenario.name], results, cells) for scenario in scenarios]
        rows.append("</tbody>")
    return "\n".join(rows)


def _head(consumer: ConsumerResult, results: Results) -> str:
    counts, (best, runs) = tally(results, consumer.name), score(results, consumer.name)
    bar = "".join(
        f'<i class="{look_name(grade)}" style="flex:{counts[grade]}"></i>' for grade in _GRADES if counts[grade]
    )
    right = f"{best} of {runs} right" if runs else "not run"
    return (
        f'<th scope="col"><a href="#{quote(consumer.name, safe="")}" tabindex="-1">{_text(consumer.title)}</a>'
        f'<span class="bar" aria-hidden="true">{bar}</span><small>{right}</small></th>'
    )


def _row(scenario: ScenarioResult, number: int, results: Results, cells: Mapping[tuple[str, str], Cell]) -> str:
    name = quote(scenario.name, safe="")
    parts = [
        f'<tr data-scenario="{number}"><th scope="row"><a href="#/{name}" tabindex="-1">{_text(scenario.name)}</a>'
        f"<small>{_text(scenario.title)}</small></th>"
    ]
    for consumer in results.consumers:
        grade = cells[consumer.name, scenario.name].grade
        look, is_right = LOOKS[grade], is_best(grade, scenario) and grade is not Grade.EXACT
        parts.append(
            f'<td class="{look_name(grade)}{" best" if is_right else ""}">'
            f'<a href="#{quote(consumer.name, safe="")}/{name}" tabindex="-1"><b>{look.symbol}</b> {look.word}</a></td>'
        )
    return "".join(parts) + "</tr>"


def _data(results: Results) -> str:
    """JSON that cannot end its element; equal lines are there once."""
    lines: dict[str, int] = {}

    def number_of(line: str) -> int:
        return lines.setdefault(line, len(lines))

    def packed(cell: Cell) -> dict[str, Any]:
        fields: dict[str, Any] = {
            name: value for name, value in dataclasses.asdict(cell).items() if value not in (None, "", ())
        }
        for name in _LINES:
            if name in fields:
                fields[name] = [number_of(line) for line in fields[name]]
        for event in fields.get("bytes", ()):
            event["size"] = len(event["event"]) // 2
            event["event"] = number_of(event["event"][: 2 * EVENT_BYTES_MAX])
        return fields

    data = {
        "grades": [
            {
                "grade": grade,
                "look": look_name(grade),
                "symbol": LOOKS[grade].symbol,
                "meaning": grade.meaning if grade else "",
            }
            for grade in _GRADES
        ],
        "event_types": {kind.value: kind.name for kind in EventType},
        "consumers": [dataclasses.asdict(consumer) for consumer in results.consumers],
        "scenarios": [dataclasses.asdict(scenario) for scenario in results.scenarios],
        "cells": [packed(cell) for cell in cells_by_place(results).values()],
        "lines": lines,
    }
    data["lines"] = list(lines)
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
