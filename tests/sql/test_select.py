"""Rows at positions: kept, read on, forked from, or read anew."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lanes.answers import OurTables

import ibbmaster
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.log.log_range import WHOLE_FILE
from ibbmaster.position import LOG_START
from ibbmaster.sql.select import TableReader


def places_in(ours: OurTables) -> list:
    """Where each group ends."""
    return [
        group.end
        for log_range in ours.engine.ranges(LOG_START, ours.engine.end(), size=WHOLE_FILE)
        for group in ours.engine.groups_in(log_range)
        if list(group.body) is not None
    ]


def everything(ours: OurTables, snapshot) -> dict[str, object]:
    found: dict[str, object] = {}
    for table in ours.base_tables(snapshot):
        try:
            found[table.full_name] = ours.answer(
                f"SELECT * FROM `{table.database}`.`{table.name}`", snapshot=snapshot
            ).rows
        except RefusedError as refused:
            found[table.full_name] = refused.err.text
    return found


@pytest.mark.parametrize("name", ["ddl-trx-xa", "types-minimal-none"])
def test_a_position_has_the_same_rows_whichever_way_it_is_reached(name: str) -> None:
    ours = OurTables(ibbmaster.open(Path(__file__).parents[2] / "fixtures/classic/11.8" / name).engine)
    places = places_in(ours)
    frozen = [ours.snapshot(place) for place in sorted(random.sample(places, 4))]  # are kept, and forked from
    at_first = [everything(ours, snapshot) for snapshot in frozen]
    for place in random.sample(places, 4):  # forward and back
        everything(ours, ours.snapshot(place))

    assert [everything(ours, snapshot) for snapshot in frozen] == at_first
    for snapshot, expected in zip(frozen, at_first, strict=True):
        ours.reader = TableReader(ours.engine, ours._schema.history())  # which reads from the start
        assert everything(ours, snapshot) == expected


def test_rows_above_what_they_may_take_are_refused_with_the_number() -> None:
    ours = OurTables(ibbmaster.open(Path(__file__).parents[2] / "fixtures/classic/11.8/types-full-crc32").engine)
    ours.reader = TableReader(ours.engine, ours._schema.history(), bytes_max=30_000)

    with pytest.raises(RefusedError, match=r"types.lobs .* take \d+ bytes, which is too much: .* may take 30000"):
        ours.answer("SELECT * FROM types.lobs")
    assert len(ours.answer("SELECT * FROM types.ints").rows) == 17
