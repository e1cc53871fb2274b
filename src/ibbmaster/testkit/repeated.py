"""Short forms of groups in scenarios: many of one kind, and long texts.

A group or a change with `times` comes that number of times, counted from `first`; `{n}` in its texts is the number, and
a text that is only that is a number. A value `{text = "ab", times = 3}` is a repeated text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ibbmaster.errors import ConfigurationError
from .given import shown

TIMES_MAX = 100_000  # of a group, or of a change in one
TEXT_SIZE_MAX = 64 << 20  # characters
_NUMBER = "{n}"


def repeated_groups(groups: Sequence[Any]) -> Iterator[Any]:
    """The groups one by one; the caller checks what is no table. Raises ConfigurationError: a number is none, or too
    large."""
    for group in _repeated(groups):
        if isinstance(group, Mapping) and isinstance(group.get("changes"), list):
            group = {**group, "changes": [_with_long_texts(change) for change in _repeated(group["changes"])]}
        yield group


def _repeated(tables: Sequence[Any]) -> Iterator[Any]:
    for table in tables:
        if not isinstance(table, Mapping) or "times" not in table:
            yield table
            continue
        times = _count("times", table["times"], TIMES_MAX)
        first = _count("first", table.get("first", 1), (1 << 63) - 1 - times)
        one = {key: value for key, value in table.items() if key not in ("times", "first")}
        for number in range(first, first + times):
            yield _numbered(one, number)


def _numbered(value: Any, number: int) -> Any:
    match value:
        case str() if value == _NUMBER:
            return number
        case str():
            return value.replace(_NUMBER, str(number))
        case Mapping():
            return {key: _numbered(each, number) for key, each in value.items()}
        case list():
            return [_numbered(each, number) for each in value]
    return value


def _with_long_texts(change: Any) -> Any:
    match change:
        case {"text": str() as text, "times": times, **rest} if not rest:
            return text * _count("times", times, TEXT_SIZE_MAX // max(1, len(text)))
        case Mapping():
            return {key: _with_long_texts(value) for key, value in change.items()}
        case list():
            return [_with_long_texts(value) for value in change]
    return change


def _count(name: str, value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ConfigurationError(f"{name} {shown(value)}: expected a whole number from 0 to {most}")
    return value
