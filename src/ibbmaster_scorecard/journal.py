"""What an adapter prints: one JSON object a line, from another program and perhaps anything. Layout:
protocol/scorecard/adapters.md."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from ibbmaster.errors import ConfigurationError, RemoteProtocolError
from ibbmaster.testkit.given import expect, naming, only, parsed, shown

LINE_SIZE_MAX = 64 << 20  # bytes: a row of a LONGTEXT, and its hexadecimal digits
LINES_MAX = 200_000
POSITION_SIZE_MAX = 1 << 16  # characters of its JSON
TEXT_KEPT_MAX = 4000  # characters
LINE_MAX = 300  # characters of a line that results keep

ChangeKind = Literal["insert", "update", "delete"]
Image = Mapping[str, Any] | list[Any]  # by name, or by position

#: What an event tells, with "?" where it may be left out.
TOLD: dict[str, tuple[str, ...]] = {
    "version": ("text",),
    "begin": ("gtid?",),
    "change": ("table", "kind", "before?", "after?"),
    "table": ("table", "columns?", "key?", "types?"),
    "statement": ("sql",),
    "commit": ("gtid?",),
    "position": ("position",),
    "error": ("text", "is_fatal?", "is_internal?", "is_retried?"),
    "unknown": ("text",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEvent:
    """One line of an adapter.

    Attributes:
        what: one of `TOLD`.
        columns, key, types: names of all columns of a table and of its primary key, and types as numbers in a TABLE_MAP
            or as SQL; None: the library does not tell them.
        is_fatal, is_internal, is_retried: of an error: the last, an undocumented one, one that the library survives.
        at: when it was read, in seconds on the runner's clock.
        process: the number of the consumer's process, from 1.
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
    return json.dumps(image, ensure_ascii=False, default=str)


def shown_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 1]}…"


def parse_told(line: bytes, *, at: float = 0.0, process: int = 1) -> ToldEvent:
    """Raises RemoteProtocolError: it breaks the protocol; the text says what was found and expected."""
    if len(line) > LINE_SIZE_MAX:
        raise RemoteProtocolError(f"a line of more than {LINE_SIZE_MAX} bytes")
    try:
        text = line.decode("utf-8")
        with naming(shown(line)):
            given = expect("event", dict, parsed("JSON", _loads, text))
        what = expect("event", Literal[tuple(TOLD)], given.pop("event", None))
        return _event(what, given, at, process)
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"{shown(line)}: no UTF-8 at byte {error.start}") from None
    except ConfigurationError as error:
        raise RemoteProtocolError(str(error)) from None


def _event(what: str, given: Mapping[str, Any], at: float, process: int) -> ToldEvent:
    needed = [key for key in TOLD[what] if not key.endswith("?")]
    only(what, given, [key.rstrip("?") for key in TOLD[what]], needed)
    values = {key: expect(f"{what}: {key}", _TYPES[key], value) for key, value in given.items()}
    for side in ("before", "after"):
        _check_image(side, values.get(side))
    if what == "position":
        try:
            size = len(json.dumps(values["position"]))
        except RecursionError:
            size = POSITION_SIZE_MAX + 1
        if size > POSITION_SIZE_MAX:
            raise ConfigurationError(f"position: more than {POSITION_SIZE_MAX} characters")
    if what == "statement":
        values["text"] = values.pop("sql")
    elif "text" in values:
        values["text"] = values["text"][:TEXT_KEPT_MAX]
    return ToldEvent(what=what, at=at, process=process, **values | {"gtid": values.get("gtid") or None})


_TYPES = {**get_type_hints(ToldEvent), "kind": ChangeKind, "sql": str}


def _check_image(side: str, image: Image | None) -> None:
    values = image.values() if isinstance(image, Mapping) else image or ()
    for value in values:
        if value is not None and not isinstance(value, str | int | float):
            raise ConfigurationError(f"change: {side}: {shown(value)}: expected null, a number or a text")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


_loads = functools.partial(json.loads, parse_constant=_refuse_constant)
