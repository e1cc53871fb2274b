"""Values as TOML, in one line each, for scenario files. Python reads TOML, and writes none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which no file can have


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
