"""What the conditions of a query say of the groups and tables that it needs, so that no others are read.

Each condition narrows down or says nothing: Spark checks all of them again on what is read.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ibbmaster.arrow.read_options import Granularity, ReadOptions
from ibbmaster.errors import GtidError
from ibbmaster.gtid import Gtid

EQUAL, IN = "EqualTo", "In"
AT_LEAST, ABOVE, AT_MOST, BELOW = "GreaterThanOrEqual", "GreaterThan", "LessThanOrEqual", "LessThan"
SEQ_NO_END = 1 << 64
NOTHING = 1, 0  # as the first and the last sequence number
WILDCARDS = "*?["


def narrowed(options: ReadOptions, filters: Iterable[Any]) -> ReadOptions:
    """Options for a query with these conditions, all of which hold; each is one of Spark's `Filter`."""
    for one in filters:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        value = getattr(one, "value", None)
        if len(attribute) == 1 and value is not None:
            options = _narrowed_by(options, attribute[0], type(one).__name__, value)
    return options


def _narrowed_by(options: ReadOptions, column: str, kind: str, value: Any) -> ReadOptions:
    values = [value] if kind == EQUAL else [one for one in value if one is not None] if kind == IN else []
    match column:
        case "_domain" if values:
            return _of_domains(options, frozenset(map(int, values)))
        case "_gtid" if values:
            return _of_gtids(options, values)
        case "_seq":
            low, high = _bounds(kind, value, values)
            return _of_seqs(options, low and math.ceil(low), high and math.floor(high))
        case "_commit_ts" if all(_is_moment(one) for one in (values or [value])):
            return _of_times(options, *_bounds(kind, value, values))
        case "_table" if values and not options.tables and options.granularity is Granularity.ROWS:
            is_plain = all(one == one.lower() and not set(one) & set(WILDCARDS) for one in values)
            return replace(options, tables=tuple(values)) if is_plain else options
    return options


def _bounds(kind: str, value: Any, values: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest value that meets a condition, perhaps with a neighbour that does not."""
    if values:
        return min(values), max(values)
    return (value if kind in (AT_LEAST, ABOVE) else None), (value if kind in (AT_MOST, BELOW) else None)


def _of_domains(options: ReadOptions, domains: frozenset[int]) -> ReadOptions:
    domains = domains & options.domains if options.domains else domains
    return replace(options, domains=domains) if domains else _of_seqs(options, *NOTHING)


def _of_gtids(options: ReadOptions, texts: list[str]) -> ReadOptions:
    try:
        gtids = [Gtid.parse(text) for text in texts]
    except GtidError:
        return options
    seqs = [gtid.seq_no for gtid in gtids]
    return _of_seqs(_of_domains(options, frozenset(gtid.domain_id for gtid in gtids)), min(seqs), max(seqs))


def _of_seqs(options: ReadOptions, low: int | None, high: int | None) -> ReadOptions:
    if (low is not None and low >= SEQ_NO_END) or (high is not None and high < 0):
        low, high = NOTHING
    low = None if low is None or low <= 0 else low
    high = None if high is None or high >= SEQ_NO_END else high
    first, last = _tighter(max, options.first_seq, low), _tighter(min, options.last_seq, high)
    return replace(options, first_seq=first, last_seq=last)


def _of_times(options: ReadOptions, low: datetime.datetime | None, high: datetime.datetime | None) -> ReadOptions:
    """Groups are of whole seconds; the end of options is not included."""
    start = None if low is None else low.timestamp()
    end = None if high is None else math.floor(high.timestamp()) + 1.0
    return replace(
        options,
        starting_time=_tighter(max, options.starting_time, start),
        ending_time=_tighter(min, options.ending_time, end),
    )


def _tighter(choose: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """The one of two limits that leaves less; None is no limit."""
    return one if other is None else other if one is None else choose(one, other)


def _is_moment(value: object) -> bool:
    """Whether a value is a moment in a known zone."""
    return isinstance(value, datetime.datetime) and value.tzinfo is not None
