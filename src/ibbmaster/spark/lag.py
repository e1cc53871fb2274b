"""The lag of a stream: what is logged, and not in the batch that was planned last."""

from __future__ import annotations

from typing import NamedTuple

from ibbmaster.gtid import GtidPosition
from ibbmaster.position import LogPosition


class ReadBatch(NamedTuple):
    """The batch that was planned last, by its end.

    Attributes:
        position: what was read up to there.
        point: where that is in the log.
        time: when its last group was logged, in seconds since 1970; None if it has none.
    """

    position: GtidPosition
    point: LogPosition
    time: float | None


def lag_of(reached: ReadBatch, logged: GtidPosition, *, now: float, size: int | None = None) -> dict[str, int]:
    """What is logged after the end of a batch, as `groups`, `bytes` and `seconds`.

    Groups are counted by sequence numbers: one that was skipped counts, too. `size` is in bytes, None if it is not
    known, as of a primary. Seconds are those since the last group of the batch was logged, 0 if there is no later one.
    """
    groups = 0
    for gtid in logged.values():
        last = reached.position.get(gtid.domain_id)
        groups += max(gtid.seq_no - (0 if last is None else last.seq_no), 0)
    found = {"groups": groups}
    if size is not None:
        found["bytes"] = max(size, 0) if groups else 0
    if not groups:
        found["seconds"] = 0
    elif reached.time is not None:
        found["seconds"] = max(int(now - reached.time), 0)
    return found
