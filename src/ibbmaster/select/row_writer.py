"""Rows out of the file where they are kept, as packets."""

from __future__ import annotations

from array import array

from ibbmaster.codec.buffer import Buffer
from ibbmaster.fold.row_file import HEAD
from ibbmaster.select.row_values import RowValues
from ibbmaster.wire.packet import frame_packets

BLOCK_SIZE = 1 << 20  # bytes of one block, about


class Writer:
    """Writes rows one after the other. The reference of `FastWriter`."""

    def __init__(self, data: Buffer, places: array[int], values: RowValues) -> None:
        self._data = data
        self._places = places
        self._values = values
        self._next = 0

    def write(self, sequence: int) -> tuple[Buffer, int] | None:
        """Packets of more rows, and the number behind them; None at the end. Raises ValueError: a value cannot be
        shown."""
        out = bytearray()
        while self._next < len(self._places) and len(out) < BLOCK_SIZE:
            packets, sequence = frame_packets(self.payload(), sequence)
            out += packets
        return (out, sequence) if out else None

    def payload(self) -> bytes:
        """Of the next row."""
        place = self._places[self._next]
        size, layout_no = HEAD.unpack_from(self._data, place)
        start = place + HEAD.size
        self._next += 1
        return self._values.payload(layout_no, bytes(self._data[start : start + size]))
