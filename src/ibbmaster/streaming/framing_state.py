"""Where in the log a block begins or ends, and the state of the framing there."""

from __future__ import annotations

from typing import NamedTuple

from ibbmaster.position import LogPosition


class FramingState(NamedTuple):
    """Between records, or inside one that is passed over (types other than -1)."""

    position: LogPosition
    skip_type: int = -1
    nested_type: int = -1


class PartState(NamedTuple):
    """Inside a group: in which of its nodes, `NOWHERE` before its begin; node 0 is the inline part, whose bytes count.

    `fields` are those of the kernel's state from `FIRST_FIELD` on, `head` is of the event that has begun.
    """

    node: int
    position: LogPosition
    fields: tuple[int, ...]
    head: bytes
