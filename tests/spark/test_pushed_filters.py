"""Conditions of a query narrow down what is read, and never leave out what meets them."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from typing import Any

import pytest

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.reading import read_task
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.pushed_filters import narrowed


@dataclass(frozen=True)
class EqualTo:
    attribute: tuple[str, ...]
    value: Any


class In(EqualTo):
    pass


class GreaterThan(EqualTo):
    pass


class GreaterThanOrEqual(EqualTo):
    pass


class LessThan(EqualTo):
    pass


class LessThanOrEqual(EqualTo):
    pass


class EqualNullSafe(EqualTo):
    pass


MEETS = {
    EqualTo: lambda cell, value: cell == value,
    EqualNullSafe: lambda cell, value: cell == value,
    In: lambda cell, value: cell in value,
    GreaterThan: lambda cell, value: cell > value,
    GreaterThanOrEqual: lambda cell, value: cell >= value,
    LessThan: lambda cell, value: cell < value,
    LessThanOrEqual: lambda cell, value: cell <= value,
}
COLUMNS = ("_gtid", "_domain", "_seq", "_commit_ts", "_table")


def read(options):
    fields = find_fields(options)
    return [row for task in plan_tasks(options, fields) for batch in read_task(task) for row in batch.to_pylist()]


def drawn(rng, rows):
    """A condition, mostly one that some rows meet."""
    column, kind = rng.choice(COLUMNS), rng.choice([*MEETS])
    value = rng.choice(rows)[column]
    if rng.random() < 0.2 and column in ("_domain", "_seq"):
        value = rng.choice((-1, 0, 1, 1 << 63, 1 << 65))
    if kind is In:
        value = tuple({value, rng.choice(rows)[column]})
    return kind((column,), value)


@pytest.mark.parametrize("uses_kernels", [True, False])
def test_a_narrowed_query_has_every_row_that_meets_its_conditions(fixtures, monkeypatch, uses_kernels):
    rng = random.Random(random.getrandbits(32))
    if not uses_kernels:
        monkeypatch.setattr("ibbmaster.arrow.reading.load_kernels", lambda options: None)
    options = parse_options({"path": str(fixtures / "ibb/domains")})
    rows = read(options)
    smaller = 0
    for _ in range(40):
        conditions = [drawn(rng, rows) for _ in range(rng.choice((1, 1, 2)))]
        wanted = [row for row in rows if all(MEETS[type(one)](row[one.attribute[0]], one.value) for one in conditions)]
        found = read(narrowed(options, conditions))
        assert [row for row in found if row in wanted] == wanted, conditions
        smaller += len(found) < len(rows)
    assert smaller > 10


def test_a_condition_on_what_groups_say_reads_no_other_group(fixtures):
    options = parse_options({"path": str(fixtures / "ibb/domains")})
    (gtid,) = {row["_gtid"] for row in read(narrowed(options, [EqualTo(("_gtid",), "2-4294967295-5")]))}
    assert gtid == "2-4294967295-5"
    assert {row["_domain"] for row in read(narrowed(options, [EqualTo(("_domain",), 7)]))} == {7}
    assert {row["_table"] for row in read(narrowed(options, [EqualTo(("_table",), "dom_7.t")]))} == {"dom_7.t"}
    assert read(narrowed(options, [GreaterThan(("_seq",), 1 << 65)])) == []
    assert read(narrowed(options, [EqualTo(("_domain",), 7), EqualTo(("_domain",), 2)])) == []


def test_what_says_nothing_of_groups_narrows_nothing(fixtures):
    options = parse_options({"path": str(fixtures / "ibb/domains"), "tables": "dom_2.*"})
    for one in (
        EqualTo(("id",), 5),
        EqualTo(("a", "_seq"), 5),
        EqualTo(("_gtid",), "x"),
        EqualTo(("_table",), "dom_7.t"),
        EqualTo(("_commit_ts",), datetime.datetime(2026, 1, 1)),
        EqualNullSafe(("_seq",), None),
        object(),
    ):
        assert narrowed(options, [one]) == options


def test_spark_asks_for_no_more_than_a_query_needs(spark, fixtures):
    frame = spark.read.format("ibb").load(str(fixtures / "ibb/domains"))
    chosen = frame.where("_gtid = '2-4294967295-5'")
    assert {row._gtid for row in chosen.collect()} == {"2-4294967295-5"}
    assert frame.where("_domain = 7 AND _seq > 3").count() == len(
        [row for row in frame.collect() if row._domain == 7 and row._seq > 3]
    )
