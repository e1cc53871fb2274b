"""Where in the log a block begins or ends."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place in the log between records, or inside one that is passed over (types other than -1)."""

    file_no: int
    file_offset: int
    skip_type: int = -1
    nested_type: int = -1


class PartPosition(NamedTuple):
    """A place inside a group: in which of its nodes, and the state of the framing there; node 0 is its inline part."""

    node: int
    file_no: int
    file_offset: int
    state: tuple[int, ...]
    head: bytes
