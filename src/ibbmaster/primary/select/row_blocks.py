"""Blocks of rows for a client, made on demand, so that a slow client costs no memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.replication.wire.refusal import broken_off
from ibbmaster.replication.wire.response import Err
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.row_file import HEAD
from ibbmaster.tables.fold.stored import Span, StoredLayout
from ibbmaster.work import BrokenOffError, check_wanted
from .row_values import RowValues, Writer

CHOSEN_ROWS = 1 << 12  # that a filter leaves, written together
ROWS_BETWEEN_LOOKS = 1 << 8

Condition = Callable[[bytes, Sequence[Span]], bool]
"""Whether a row is wanted, by its image and the places of values in it."""


class StoredRowBlocks:
    """Rows by the places where they are kept; a filter may leave some out. See `RowBlocks`."""

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
        """Packets of more rows."""
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
