"""Rows that are there as changes leave them: which of them changes are about, and what these become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ibbmaster.lake.row_versions import DELETED, END, LastChanges

NONE = -1  # the number of a row that no key names


def numbers_of(rows: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> Any:
    """For each row the number of the wanted one with its key, or `NONE`; no key is wanted twice."""
    found, numbers = np.zeros(len(rows), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
    is_there = np.ones(len(rows), dtype=bool)
    for key in keys:
        values = pc.unique(wanted[key])
        places = pc.index_in(rows[key].cast(values.type), value_set=values)
        is_there &= pc.is_valid(places).to_numpy()
        found = found * len(values) + pc.fill_null(places, 0).to_numpy()
        numbers = numbers * len(values) + pc.index_in(wanted[key], value_set=values).to_numpy()
        # Numbers stay below that of the wanted rows, so that many columns do not make them too large.
        known, numbers = np.unique(numbers, return_inverse=True)
        places = np.searchsorted(known, found)
        places[places == len(known)] = 0
        is_there &= len(known) > 0 and known[places] == found
        found = places
    order = np.empty(len(wanted), dtype=np.int64)
    order[numbers] = np.arange(len(wanted))
    return np.where(is_there, order[found], NONE) if len(order) else np.full(len(rows), NONE)


def as_changed(rows: pa.Table, numbers: Any, changes: LastChanges) -> pa.Table:
    """Rows as changes leave them; `numbers` says for each which change is its own."""
    kept = np.ones(len(rows), dtype=bool)
    kept[numbers >= 0] = changes.outcomes[numbers[numbers >= 0]] != DELETED
    places = np.flatnonzero(kept)
    numbers = numbers[kept]
    columns = {}
    for name in rows.column_names:
        is_new = numbers >= 0
        if name in changes.known:
            is_new[is_new] = changes.known[name][numbers[is_new]]
        columns[name] = _chosen(rows[name], changes.rows[name], np.where(is_new, len(rows) + numbers, places))
    return pa.table(columns, rows.schema)


def as_ended(rows: pa.Table, numbers: Any, ended: pa.Table) -> pa.Table:
    """Versions of rows of which some have ended; `numbers` says for each which end is its own."""
    is_ended = numbers >= 0
    places = np.where(is_ended, len(rows) + numbers, np.arange(len(rows)))
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {name: _chosen(rows[name], ended[name], places) for name in END}
    columns["_is_current"] = pa.array(~is_ended & rows["_is_current"].to_numpy())
    return pa.table(columns, rows.schema)


def _chosen(one: pa.ChunkedArray, other: pa.ChunkedArray, places: Any) -> pa.ChunkedArray:
    chunks = [*one.chunks, *other.cast(one.type).chunks]
    return pa.chunked_array([pa.chunked_array(chunks, one.type).take(pa.array(places)).combine_chunks()], one.type)
