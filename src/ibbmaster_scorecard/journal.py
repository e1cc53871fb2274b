"""What an adapter prints: one JSON object a line. Layout: protocol/scorecard/adapters.md.

The lines come from another program, and may be anything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ibbmaster.errors import RemoteProtocolError

LINE_SIZE_MAX = 64 << 20  # bytes: a row of a LONGTEXT, and its hexadecimal digits
LINES_MAX = 200_000
POSITION_SIZE_MAX = 1 << 16  # characters of its JSON
TEXT_KEPT_MAX = 4000  # characters of a text that a user was told
SHOWN_MAX = 80
LINE_MAX = 300  # characters of a line that results keep
CHANGE_KINDS = ("insert", "update", "delete")

Image = Mapping[str, Any] | list[Any]  # by name, or by position where the library knows no names

IMAGES = (dict, list, type(None))

#: What is told -> its keys, each with the types it may have; "?" after a key: it may be left out.
TOLD: dict[str, dict[str, tuple[type, ...]]] = {
    "version": {"text": (str,)},
    "begin": {"gtid?": (str, type(None))},
    "change": {"table": (str,), "kind": (str,), "before?": IMAGES, "after?": IMAGES},
    "table": {"table": (str,), **dict.fromkeys(("columns?", "key?", "types?"), (list, type(None)))},
    "statement": {"sql": (str,)},
    "commit": {"gtid?": (str, type(None))},
    "position": {"position": (object,)},
    "error": {"text": (str,), "is_fatal?": (bool,), "is_internal?": (bool,), "is_retried?": (bool,)},
    "unknown": {"text": (str,)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEvent:
    """One line of an adapter.

    Attributes:
        what: one of `TOLD`.
        columns, key, types: of a table, as the library tells them: all columns by name, those of the primary key, and
            the types, by their numbers in a TABLE_MAP or as SQL; None: it does not tell them.
        text: of a version, a statement, an error or an unknown event.
        is_fatal: it follows no more; `is_internal`: the library does not document such an error; `is_retried`: the
            library says that it takes it up again by itself.
        at: when it was read, in seconds on the runner's clock.
        process: how often the consumer had been started, counted from 1.
    """

    what: str
    gtid: str | None = None
    table: str = ""
    kind: str = ""
    before: Image | None = None
    after: Image | None = None
    columns: tuple[str, ...] | None = None
    key: tuple[str, ...] | None = None
    types: tuple[int | str, ...] | None = None
    text: str = ""
    position: Any = None
    is_fatal: bool = False
    is_internal: bool = False
    is_retried: bool = False
    at: float = 0.0
    process: int = 1

    @property
    def is_progress(self) -> bool:
        """Whether it tells of something in the log."""
        return self.what in ("begin", "change", "statement", "commit", "unknown")

    def __str__(self) -> str:
        match self.what:
            case "begin" | "commit":
                return f"{self.what} {self.gtid or ''}".rstrip()
            case "change":
                images = [shown_image(image) for image in (self.before, self.after) if image is not None]
                return f"change {self.kind} {self.table} {' -> '.join(images)}"
            case "table":
                told = (("columns", self.columns), ("key", self.key), ("types", self.types))
                shown = " ".join(f"{name} {list(value)}" for name, value in told if value is not None)
                return f"table {self.table} {shown}".rstrip()
            case "position":
                return f"position {json.dumps(self.position, ensure_ascii=False)}"
            case "error":
                kind = "fatal " if self.is_fatal else ""
                return f"{kind}error: {self.text}"
        return f"{self.what} {self.text}"


def shown_image(image: Image) -> str:
    """An image in a line."""
    return json.dumps(image, ensure_ascii=False, default=str)


def shown_line(text: str) -> str:
    """A text in one line of bounded length."""
    text = " ".join(text.split())
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 1]}…"


def parse_told(line: bytes, *, at: float = 0.0, process: int = 1) -> ToldEvent:
    """What one line says. Raises RemoteProtocolError: it is no line of this protocol; the text says what was found and
    what was expected."""
    if len(line) > LINE_SIZE_MAX:
        raise RemoteProtocolError(f"a line of more than {LINE_SIZE_MAX} bytes")
    try:
        given = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"{_shown(line)}: no UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise RemoteProtocolError(f"{_shown(line)}: nested too deeply") from None
    except ValueError as error:
        raise RemoteProtocolError(f"{_shown(line)}: no JSON: {error}") from None
    if not isinstance(given, dict):
        raise RemoteProtocolError(f"{_shown(line)}: expected an object")
    what = given.pop("event", None)
    keys = TOLD.get(what) if isinstance(what, str) else None
    if keys is None:
        raise RemoteProtocolError(f"event {_shown(what)}: expected one of {', '.join(TOLD)}")
    assert isinstance(what, str)
    _check_keys(what, keys, given)
    return _event(what, given, at, process)


def _check_keys(what: str, keys: Mapping[str, tuple[type, ...]], given: Mapping[str, Any]) -> None:
    names = {key.rstrip("?"): kinds for key, kinds in keys.items()}
    for name in given:
        if name not in names:
            raise RemoteProtocolError(f"{what}: {_shown(name)} means nothing here; expected {', '.join(names)}")
    for key, kinds in keys.items():
        name = key.rstrip("?")
        if name not in given and not key.endswith("?"):
            raise RemoteProtocolError(f"{what}: {name!r} is missing")
        if name in given and not isinstance(given[name], kinds):
            expected = " or ".join(_JSON_TYPES[kind] for kind in kinds)
            raise RemoteProtocolError(f"{what}: {name} {_shown(given[name])}: expected {expected}")


def _event(what: str, given: Mapping[str, Any], at: float, process: int) -> ToldEvent:
    text = given.get("text", given.get("sql", ""))
    if what == "change":
        if given["kind"] not in CHANGE_KINDS:
            raise RemoteProtocolError(f"change: kind {_shown(given['kind'])}: expected {', '.join(CHANGE_KINDS)}")
        for side in ("before", "after"):
            _check_image(side, given.get(side))
    if what == "table":
        for name, kinds in (("columns", (str,)), ("key", (str,)), ("types", (int, str))):
            if any(type(value) not in kinds for value in given.get(name) or ()):
                expected = " or ".join(_MANY[kind] for kind in kinds)
                raise RemoteProtocolError(f"table: {name} {_shown(given[name])}: expected a list of {expected}")
    if what == "position":
        try:
            size = len(json.dumps(given["position"]))
        except RecursionError:
            size = POSITION_SIZE_MAX + 1
        if size > POSITION_SIZE_MAX:
            raise RemoteProtocolError(f"position: more than {POSITION_SIZE_MAX} characters")
    lists = {name: tuple(given[name]) for name in ("columns", "key", "types") if given.get(name) is not None}
    kept = {name: value for name, value in given.items() if name not in ("text", "sql")} | lists
    text = text if what == "statement" else text[:TEXT_KEPT_MAX]
    return ToldEvent(what=what, text=text, at=at, process=process, **kept | {"gtid": given.get("gtid") or None})


def _check_image(side: str, image: Image | None) -> None:
    values = image.values() if isinstance(image, dict) else image or ()
    for value in values:
        if value is not None and not isinstance(value, str | int | float):
            raise RemoteProtocolError(f"change: {side}: {_shown(value)}: expected null, a number or a text")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


_MANY = {str: "texts", int: "whole numbers"}
_JSON_TYPES = {
    str: "a text",
    dict: "an object",
    list: "a list",
    bool: "true or false",
    type(None): "null",
    object: "a value",
}


def _shown(value: object) -> str:
    try:
        text = repr(value[: SHOWN_MAX + 1] if isinstance(value, bytes | str) else value)
    except RecursionError:
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
