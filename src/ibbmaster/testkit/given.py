"""What people write in TOML and programs in JSON: read with bounds, checked against types, and written as TOML."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ibbmaster.errors import ConfigurationError, IbbMasterError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which no file can have
SHOWN_MAX = 80  # characters of a value in an error
_NAMES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
    types.NoneType: "null",
}


def read_small_file(path: Path, size_max: int) -> str:
    """The text of a file; no more is read of a device or a pipe, which have no size. Raises ConfigurationError: it
    cannot be read, is larger, or is no UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(size_max + 1)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    if len(data) > size_max:
        raise ConfigurationError(f"{path}: expected a file of at most {size_max} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: no UTF-8 at byte {error.start}") from None


def parsed(format_name: str, loads: Callable[[str], Any], text: str) -> Any:
    """Raises ConfigurationError: it is not of that format, or nested too deeply."""
    try:
        return loads(text)
    except RecursionError:
        raise ConfigurationError(f"no {format_name} of ours: nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"no {format_name}: {error}") from None


@contextlib.contextmanager
def naming(where: str) -> Iterator[None]:
    try:
        yield
    except (IbbMasterError, ValueError) as error:
        raise ConfigurationError(f"{where}: {error}") from None


def expect(where: str, wanted: Any, value: object) -> Any:
    """A value as a type has it: a list becomes a tuple of checked values, a table a dataclass, a whole number a float;
    booleans are no numbers. Raises ConfigurationError: it has another type; the text names the place."""
    members = get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    member = next((member for member in members if _is_of(member, value)), None)
    if member is None:
        raise ConfigurationError(f"{where} {shown(value)}: expected {' or '.join(map(_name, members))}")
    if dataclasses.is_dataclass(member) and isinstance(member, type):
        return read(where, member, value)
    kind, inside = get_origin(member) or member, get_args(member)
    if kind is tuple and isinstance(value, list):
        return tuple(expect(f"{where}[{number}]", inside[0], one) for number, one in enumerate(value))
    if kind is Mapping and isinstance(value, dict) and inside[1] is not Any:
        return {key: expect(f"{where}.{key}", inside[1], one) for key, one in value.items()}
    if choices := _choices(member):
        if value not in choices:
            raise ConfigurationError(f"{where} {shown(value)}: expected {_name(member)}")
        return value if kind is Literal else kind(value)
    return float(value) if kind is float and isinstance(value, int) else value


def read(where: str, kind: Any, given: object, **beside: object) -> Any:
    """A dataclass from a table of its fields, but for those given `beside` it; errors as `expect` and `only`."""
    table = expect(where, dict, given)
    hints, fields = _fields(kind)
    names = [name for name in fields if name not in beside]
    only(where, table, names, [name for name in names if fields[name]])
    prefix = f"{where}." if where else ""
    return kind(**beside, **{name: expect(prefix + name, hints[name], value) for name, value in table.items()})


def only(where: str, given: Mapping[str, Any], keys: Collection[str], needed: Iterable[str] = ()) -> None:
    """Raises ConfigurationError: there are other keys, or a needed one is missing."""
    place = f"{where}: " if where else ""
    for key in given:
        if key not in keys:
            expected = ", ".join(keys) or "nothing"
            raise ConfigurationError(f"{place}{key[:SHOWN_MAX]!r} means nothing here; expected {expected}")
    for key in needed:
        if key not in given:
            raise ConfigurationError(f"{place}{key!r} is missing")


def shown(value: object) -> str:
    """A value in an error, at most 80 characters of it."""
    try:
        text = repr(value[: SHOWN_MAX + 1] if isinstance(value, bytes | str) else value)
    except RecursionError:
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], dict[str, bool]]:
    missing = dataclasses.MISSING
    required = {one.name: one.default is one.default_factory is missing for one in dataclasses.fields(kind)}
    return typing.get_type_hints(kind), required


def _is_of(wanted: Any, value: object) -> bool:
    if wanted is Any:
        return True
    kind = _plain(wanted)
    accepted = (int, float) if kind is float else kind
    return isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))


def _plain(wanted: Any) -> Any:
    kind = get_origin(wanted) or wanted
    if kind is Mapping or dataclasses.is_dataclass(kind):
        return dict
    return list if kind is tuple else str if _choices(wanted) else kind


def _choices(wanted: Any) -> tuple[Any, ...]:
    if get_origin(wanted) is Literal:
        return get_args(wanted)
    return tuple(wanted) if isinstance(wanted, enum.EnumType) else ()


def _name(wanted: Any) -> str:
    choices = _choices(wanted)
    return f"one of {', '.join(choices)}" if choices else _NAMES[_plain(wanted)]


# Python reads TOML, and writes none


def toml_value(value: object) -> str:
    """A text, number, boolean, list or table. Raises TypeError: TOML has no such value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            whole = _HALF.sub("\N{REPLACEMENT CHARACTER}", value)
            return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007F")
        case Mapping():
            pairs = ", ".join(f"{toml_key(str(key))} = {toml_value(each)}" for key, each in value.items())
            return f"{{{pairs}}}"
        case Sequence() if not isinstance(value, bytes):
            return f"[{', '.join(map(toml_value, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_lines(table: Mapping[str, object]) -> list[str]:
    return [f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items()]
