"""Where in the log a block begins or ends, and the state of the framing there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.position import LogPosition


class Mark(Hashable, Protocol):
    """Where a block begins or ends: who frames from there on needs to know no more. Hashable; `str` is for errors."""

    @property
    def position(self) -> LogPosition:
        """Where a reader continues; inside a group that is where the group begins."""

    @property
    def is_inside_group(self) -> bool:
        """Whether a group has begun whose end is still to come; only who made the mark can continue from there."""


class FramingState(NamedTuple):
    """Between records, or inside one that is skipped (types other than -1)."""

    position: LogPosition
    skip_type: int = -1
    nested_type: int = -1

    @property
    def is_inside_group(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{format_file_name(max(self.position.file_no, 0))} offset {self.position.offset}"


def file_end(end: LogPosition | None, at: LogPosition) -> int:
    """The offset of an end in the file of a place: 0 where the end is none, or in a later file; else 1 at least."""
    if end is None or end.file_no > at.file_no:
        return 0
    return max(1, end.offset) if end.file_no == at.file_no else 1
