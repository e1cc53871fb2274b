"""Blocks of rows on their way to a client: made when they are asked for, so that a slow one costs no memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import IbbMasterError
from ibbmaster.sql.conditions import Condition
from ibbmaster.sql.row_file import HEAD, RowFile
from ibbmaster.sql.row_values import RowValues
from ibbmaster.sql.stored import StoredLayout
from ibbmaster.wire.packet import frame_packets
from ibbmaster.wire.response import Err

BLOCK_SIZE = 256 << 10  # bytes of one block, about


class StoredRowBlocks:
    """Rows by the places where they are kept, of which a filter may leave some out."""

    def __init__(
        self,
        rows: RowFile,
        places: array[int],
        values: RowValues,
        *,
        condition: Callable[[StoredLayout], Condition] | None = None,
        skip: int = 0,
        limit: int | None = None,
        on_error: Callable[[Exception], Err],
    ) -> None:
        self._data = rows.data()
        self._places = places
        self._values = values
        self._make_condition = condition
        self._conditions: dict[int, Condition] = {}
        self._skip = skip
        self._left = limit
        self._next = 0
        self._on_error = on_error

    def next_block(self, sequence: int) -> tuple[Buffer, int] | Err | None:
        """Packets of more rows; see `RowBlocks`."""
        out = bytearray()
        try:
            while self._next < len(self._places) and self._left != 0 and len(out) < BLOCK_SIZE:
                place = self._places[self._next]
                size, layout_no = HEAD.unpack_from(self._data, place)
                start = place + HEAD.size
                image = bytes(self._data[start : start + size])
                self._next += 1
                if not self._is_wanted(layout_no, image):
                    continue
                if self._skip:
                    self._skip -= 1
                    continue
                if self._left is not None:
                    self._left -= 1
                packets, sequence = frame_packets(self._values.payload(layout_no, image), sequence)
                out += packets
        except (IbbMasterError, ValueError) as error:
            return self._on_error(error)
        return (out, sequence) if out else None

    def close(self) -> None:
        """Nothing more is asked for."""
        self._next = len(self._places)

    def _is_wanted(self, layout_no: int, image: bytes) -> bool:
        if self._make_condition is None:
            return True
        condition = self._conditions.get(layout_no)
        layout = self._values.layouts[layout_no]
        if condition is None:
            condition = self._conditions[layout_no] = self._make_condition(layout)
        return condition(image, layout.spans(image)[0]) is True
