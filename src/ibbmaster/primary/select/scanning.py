"""A SELECT of one table as a scan: ranges of its key, a condition, and rows sent as they are stored."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.loading import has_numpy, kernels
from ibbmaster.primary.dialogue.relation import Relation
from ibbmaster.replication.event.column_types.decimals import Decimals
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.changes import Span
from ibbmaster.replication.wire.refusal import RefusedError, broken_off, not_supported
from ibbmaster.replication.wire.response import BlockResultSet, ColumnDefinition, Err
from ibbmaster.rows.expr import values
from ibbmaster.rows.expr.compiling import Compiler
from ibbmaster.rows.expr.judged import expect_function
from ibbmaster.rows.expr.kinds import definition_of
from ibbmaster.rows.expr.scalars import SqlValue, as_truth
from ibbmaster.rows.expr.session_facts import QuerySession
from ibbmaster.rows.expr.stored_values import key_literal
from ibbmaster.schema.indexing import row_key
from ibbmaster.sqltext.expression import (
    Aggregate,
    Item,
    Literal,
    Operation,
    SqlQuery,
    children,
    contains,
    equalities,
    parts,
)
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.kept_rows import HEAD
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayout, is_text, own_columns, sort_key
from ibbmaster.work import BrokenOffError, check_wanted
from .key_ranges import KeyPart, ranges_of
from .row_values import RowValues, ShownColumn, Writer, local_columns
from .sources import KnownNames, SourceTable
from .table_reader import ALL_ROWS, UNKNOWN_ROWS, FoundRows, RowRange
from .tables import LoadedTable, step_of

ROWS_MAX = 1 << 62
OUT_OF_RANGE = 1690
CHOSEN_ROWS = 1 << 12  # that a filter leaves, written together
ROWS_BETWEEN_LOOKS = 1 << 8

Condition = Callable[[bytes, Sequence[Span]], bool]
"""Whether a row is wanted, by its image and the places of values in it."""


class TableScan:
    """A SELECT of one table of the log; `ranges` of its key have the wanted rows. Raises RefusedError: it names what
    does not exist."""

    def __init__(self, block: SqlQuery, source: SourceTable, loaded: LoadedTable, session: QuerySession) -> None:
        self._block = block
        self._loaded = loaded
        self._session = session
        self._table = loaded.table
        self._own = {column.id: column for column in own_columns(loaded.table)}
        self._local = local_columns(loaded.table)
        scope = KnownNames([source])
        self._items = scope.items(block.items)
        self._where = None if block.where is None else scope.resolved(block.where, "WHERE")
        self._order = [(scope.order_key(key.node, self._items), key.is_descending) for key in block.order_by]
        self._index = row_key(loaded.table)
        self._by_id = {loaded.column(column.slot).id: column.slot for column in source.columns}
        self.ranges = ranges_of(self._where, self._key_parts())

    def _key_parts(self) -> list[KeyPart]:
        parts = [] if self._index is None else self._index.parts
        return [
            KeyPart(
                self._by_id[part.column_id],
                self._key_encoder(self._own[part.column_id], part.is_descending),
                part.is_descending,
            )
            for part in parts
            if part.column_id in self._by_id
        ]

    def _key_encoder(self, stored: StoredColumn, is_descending: bool) -> Callable[[Any], bytes]:
        make, zone = sort_key(stored, is_descending=is_descending), self._session.time_zone_s
        return lambda value: make(key_literal(stored.column, stored.type, value, zone))

    @property
    def counts_rows(self) -> bool:
        counts = all(
            isinstance(node, Aggregate) and node.name == "count" and not node.is_distinct and _is_counted(node)
            for node in self._nodes()
        )
        return counts and self.ranges.is_exact and not self._block.order_by

    def wanted(self) -> RowRange:
        direction, (skip, limit) = self._direction(), self._block.limit or (0, None)
        is_plain = self.ranges.is_exact and not any(contains(node, Aggregate) for node in self._nodes())
        if is_plain and limit is not None and direction is not None:
            return RowRange(self.ranges.intervals, is_descending=direction, limit=min(skip + limit, ROWS_MAX))
        if self._block.where is not None:
            return RowRange(self.ranges.intervals, are_few=self.ranges.intervals != ALL_ROWS.intervals)
        return RowRange(are_ends=True) if all(map(self._is_at_an_end, self._nodes())) else ALL_ROWS

    def count(self, columns: tuple[ColumnDefinition, ...], rows_of: Callable[..., FoundRows]) -> Relation:
        key = [] if self._index is None else [part.column_id for part in self._index.parts]
        found = rows_of(self._table, key, RowRange(self.ranges.intervals, is_counted=True))
        return Relation(columns, [(b"%d" % found.count,) * len(columns)]).limited(self._block.limit)

    def _nodes(self) -> list[Any]:
        return [item.node for item in self._items]

    def _is_at_an_end(self, node: Any) -> bool:
        """Whether the first or last row in the key's order decides on an aggregate."""
        match node:
            case Aggregate(name=("min" | "max"), arguments=(SqlValue() as slot,)) if self._index is not None:
                first = self._own[self._index.parts[0].column_id]
                kind = kind_of(first.column)
                return self._by_id.get(first.id) == slot and kind.is_exact
        return False

    def shown(self) -> list[ShownColumn] | None:
        """The columns of an answer with stored rows, in the order of the key or against it; None for another answer.
        Raises RefusedError: the values of a column are not known."""
        if contains(self._where, Aggregate):
            return None
        found = [self._shown_column(item) for item in self._items]
        used = {slot for node in (self._where, *(key for key, _ in self._order)) for slot in parts(node, SqlValue)}
        if any(self._loaded.column(slot).id in self._local for slot in used) or self._direction() is None:
            return None
        return None if None in found else [column for column in found if column is not None]

    def _shown_column(self, item: Item) -> ShownColumn | None:
        match item.node:
            case SqlValue() as slot:
                column = self._loaded.column(slot)
                assert slot.type.column is not None
                definition = replace(slot.type.column, name=item.name)
                if (local := self._local.get(column.id)) is None:
                    return ShownColumn(definition, column, self._own[column.id])
                if local.source is None:
                    text = f"column {column.name} of {self._table.full_name} is VIRTUAL, and each reader's session "
                    text += f"computes it anew: its values are not known for ({column.expression})"
                    raise RefusedError(UNKNOWN_ROWS, "HY000", text)
                return ShownColumn(definition, local.source, self._own[local.source.id], change=local.change)
            case Literal() as literal:
                scalar = Compiler(self._session).scalar(literal)
                store, show = values.storing(scalar.type), values.shower(scalar.type, self._session)
                value = scalar.value if store is None or scalar.value is None else store(scalar.value)
                return ShownColumn(
                    definition_of(scalar.type, item.name, self._session.charset, self._session.collation_id),
                    text=None if value is None or show is None else show(value),
                )
        return None

    def answer(self, shown: list[ShownColumn], rows_of: Callable[..., FoundRows]) -> BlockResultSet:
        """Find the places of the rows; they are read on demand. Raises RefusedError: the condition is not computed
        here, or rows are not exact.
        """
        condition = None if self.ranges.is_exact else self._condition()
        skip, limit = self._block.limit or (0, None)
        last = None if limit is None or condition is not None else min(skip + limit, ROWS_MAX)
        touched = {slot for node in (*self._nodes(), self._where) for slot in parts(node, SqlValue)}
        ids = {self._loaded.column(slot).id for slot in touched} | {
            part.column_id for part in (self._index.parts if self._index is not None else ())
        }
        found = rows_of(
            self._table, list(ids), RowRange(self.ranges.intervals, is_descending=bool(self._direction()), limit=last)
        )
        places = found.places
        if condition is None:
            places, skip, limit = places[skip:] if skip else places, 0, None
        contents = found.contents
        blocks = StoredRowBlocks(
            found.data,
            places,
            RowValues(
                shown,
                contents.layouts,
                TextSettings(self._session.charset, self._session.time_zone_s),
                is_binary=self._session.is_binary,
                used=contents.used,
            ),
            condition=condition,
            skip=skip,
            limit=limit,
            kernels=kernels() if has_numpy() else None,
            on_error=self._error,
        )
        return BlockResultSet(columns=tuple(column.definition for column in shown), blocks=blocks)

    def _error(self, error: Exception) -> Err:
        if not isinstance(error, RefusedError):
            return Err(code=UNKNOWN_ROWS, sqlstate="HY000", text=f"a row of {self._table.full_name}: {error}")
        return in_question(error, is_limited=self._block.limit is not None).err

    def _condition(self) -> Callable[[StoredLayout], Condition]:
        """For rows in ranges that are not exact."""
        compiler = Compiler(self._session)
        scalar = compiler.scalar(self._where)
        expect_function("NOT", [scalar])
        truth = as_truth(scalar).run
        valued = set(_valued(self._where))
        shown = TextSettings("utf8mb4", self._session.time_zone_s)

        def step(slot: SqlValue, layout: StoredLayout) -> tuple[int | None, Any]:
            column, load = self._loaded.column(slot), values.loading(slot.type)
            place, decode = step_of(column, self._own[column.id], layout, shown)
            if place is None:
                return None, decode if load is None or decode is None else load(decode)
            if slot not in valued:
                return place, bytes
            stored = layout.columns[place]
            if isinstance(kind := kind_of(stored.column), Decimals) and stored.type == column.type:
                return place, kind.convert(stored.column)
            return place, decode if load is None else lambda data: load(decode(data))

        def of_layout(layout: StoredLayout) -> Condition:
            steps = [step(slot, layout) for slot in compiler.slots]
            if len(steps) == 1 and steps[0][0] is not None:
                only, read = steps[0][0], steps[0][1]
                if not valued:
                    of_null, of_others = truth((None,)) is True, truth((b"",)) is True
                    return lambda image, spans: of_null if spans[only] is None else of_others

                def meets(image: bytes, spans: Sequence[Span]) -> bool:
                    span = spans[only]
                    return truth((None if span is None else read(image[span[0] : span[1]]),)) is True

                return meets

            def is_met(image: bytes, spans: Sequence[Span]) -> bool:
                row = [
                    decode
                    if place is None
                    else None
                    if (span := spans[place]) is None
                    else decode(image[span[0] : span[1]])
                    for place, decode in steps
                ]
                return truth(row) is True

            return is_met

        return of_layout

    def _direction(self) -> bool | None:
        """Whether rows go against the order of their keys; None if something else orders them."""
        if not self._order:
            return False
        parts = [] if self._index is None else list(self._index.parts)
        fixed = {slot for slot, literal in _equal(self._where) if self._is_one_value(slot, literal)}
        found: bool | None = None
        for node, is_descending in self._order:
            while parts and (slot := self._by_id.get(parts[0].column_id)) != node and slot in fixed:
                parts.pop(0)
            if self._index is not None and not parts:
                break  # the key is unique
            is_next = bool(parts) and self._by_id.get(parts[0].column_id) == node
            if node in fixed and not is_next:
                continue
            if not is_next:
                return None
            part = parts.pop(0)
            own = self._own[part.column_id]
            if not kind_of(own.column).is_ordered or (is_text(own) and not (own.type.collation or "").endswith("_bin")):
                return None
            is_opposite = is_descending != part.is_descending
            if found not in (None, is_opposite):
                return None
            found = is_opposite
        return bool(found)

    def _is_one_value(self, slot: SqlValue, literal: Literal) -> bool:
        """Whether all values that equal a literal are stored alike: the key's rest orders their rows."""
        own = self._own[self._loaded.column(slot).id]
        with suppress(ValueError):
            key_literal(own.column, own.type, literal.value, self._session.time_zone_s)
            return literal.charset is None
        return False


class StoredRowBlocks:
    """The `RowBlocks` of rows where they are kept, perhaps filtered."""

    def __init__(
        self,
        data: Buffer,
        places: array[int],
        values: RowValues,
        *,
        condition: Callable[[StoredLayout], Condition] | None = None,
        skip: int = 0,
        limit: int | None = None,
        on_error: Callable[[Exception], Err],
        kernels: Kernels | None = None,
    ) -> None:
        self._data = data
        self._places = places
        self._values = values
        self._make_condition = condition
        self._conditions: dict[int, Condition] = {}
        self._skip = skip
        self._left = limit
        self._on_error = on_error
        self._kernels = kernels
        self._blocks: Iterator[array[int]] | None = None
        self._writer: Writer | None = None

    def next_block(self, sequence: int) -> tuple[Buffer, int] | Err | None:
        try:
            if self._blocks is None:
                self._blocks = self._chosen()
            while True:
                check_wanted()
                if self._writer is None:
                    places = next(self._blocks, None)
                    if places is None:
                        return None
                    self._writer = self._new_writer(places)
                found = self._writer.write(sequence)
                if found is not None:
                    return found
                self._writer = None
        except (IbbMasterError, ValueError) as error:
            self.close()
            return self._on_error(error)
        except BrokenOffError as error:
            self.close()
            return broken_off(error.reason).err

    def close(self) -> None:
        self._blocks, self._writer = iter(()), None

    def _new_writer(self, places: array[int]) -> Writer:
        if self._kernels is None:
            return Writer(self._data, places, self._values)
        from .fast_rows import FastWriter

        return FastWriter(self._data, places, self._values, self._kernels)

    def _chosen(self) -> Iterator[array[int]]:
        if self._make_condition is None:
            yield self._places
            return
        chosen, last_no = array("q"), -1
        for count, place in enumerate(self._places):
            if not count % ROWS_BETWEEN_LOOKS:
                check_wanted()
            if self._left == 0:
                break
            size, layout_no = HEAD.unpack_from(self._data, place)
            if layout_no != last_no:
                last_no, layout = layout_no, self._values.layouts[layout_no]
                if layout_no not in self._conditions:
                    self._conditions[layout_no] = self._make_condition(layout)
                is_wanted, spans_of = self._conditions[layout_no], layout.spans
            image = bytes(self._data[place + HEAD.size : place + HEAD.size + size])
            if not is_wanted(image, spans_of(image)[0]):
                continue
            if self._skip:
                self._skip -= 1
                continue
            if self._left is not None:
                self._left -= 1
            chosen.append(place)
            if len(chosen) == CHOSEN_ROWS:
                yield chosen
                chosen = array("q")
        if chosen:
            yield chosen


def in_question(error: RefusedError, *, is_limited: bool) -> RefusedError:
    """The error of a query: behind a LIMIT a server perhaps never computes a value out of range."""
    if error.err.code == OUT_OF_RANGE and is_limited:
        return not_supported("LIMIT over rows of which some have a value out of range")
    return error


def is_scanned(block: SqlQuery) -> bool:
    return not (block.is_distinct or block.group_by or block.having is not None)


def _is_counted(node: Aggregate) -> bool:
    match node.arguments:
        case () | (Literal(value=(int() | str())),):
            return True
    return False


def _valued(node: Any) -> Iterator[SqlValue]:
    match node:
        case Operation("IS NULL", (SqlValue(),)):
            return
        case SqlValue():
            yield node
    for child in children(node):
        yield from _valued(child)


def _equal(where: Any) -> Iterator[tuple[SqlValue, Literal]]:
    for pair in equalities(where):
        match pair:
            case (SqlValue() as slot, Literal() as one) | (Literal() as one, SqlValue() as slot):
                yield slot, one
