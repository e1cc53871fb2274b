"""Options as texts, read and checked once, for `ReadOptions` and `spark.write_options`."""

import dataclasses
import datetime
import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import ID_MAX, GtidPosition
from ibbmaster.logs.classic.packing import holds_traditional
from ibbmaster.logs.log.large_rows import parse_row_event_max
from ibbmaster.logs.stages.options import StageOptions, check_stages, given_stages, renamed_table
from ibbmaster.schema.declarations import parse_declarations
from ibbmaster.schema.name_case import NameCase, parse_name_case
from ibbmaster.sizes import parse_size
from ibbmaster.sqltext.table_name import divided, parse_table_name, parse_table_pattern
from ibbmaster.storage.disk.place import place, whole_place
from .live import position_of_option
from .read_options import Granularity, ReadOptions, parse_schema_mode, with_keys
from .staging import named_as_options, option_names

NUMBER_END = 1 << 63  # Spark's and Arrow's largest numbers have 64 bits, one for the sign
COUNT_OF_FILES_END = 1 << 31  # as in Spark's ReadMaxFiles
PORT_END = 1 << 16
ID_END = ID_MAX + 1  # of domains and servers
VALUE_TEXT_MAX = 60
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SCRIPT = re.compile(r"(?:create|use)\s|--\s|/\*", re.IGNORECASE)
_QUOTED = re.compile(r"(?<![^.])`((?:[^`]|``)*)`")

STAGES = option_names()  # by their names in Python
_OF_FILES = ("after", "until", "map_server_id", "map_domain")  # of logs with places and GTIDs of their own
FORMATS = ("ibb", "mariadb_binlog")
OF_CATALOG = frozenset(("location", "provider", "owner", "comment", "external", "is_managed_location", "collation"))
COPY = "option."  # in front of a second copy of an option


def option_fields(options: type) -> dict[str, Any]:
    return {one.metadata["name"]: one for one in dataclasses.fields(options) if one.metadata}


NAMES = (*option_fields(ReadOptions), *STAGES.values())


def schema_options(schema: str | None, name_case: int | None) -> dict[str, str]:
    given = {} if schema is None else {"schema": schema}
    return given if name_case is None else {**given, "lowerCaseTableNames": str(name_case)}


def expect_known(given: Mapping[str, str], names: Iterable[str]) -> None:
    """Raises ConfigurationError: an option, in small letters, is none of these."""
    if unknown := sorted(set(given) - {name.lower() for name in names}):
        raise ConfigurationError(f"unknown option {', '.join(unknown)}; known are {', '.join(names)}")


def read_fields(options: type, given: Mapping[str, str]) -> dict[str, Any]:
    """The values of given fields that need no other one. Raises ConfigurationError: one cannot be read."""
    found = {}
    for name, one in option_fields(options).items():
        text, kind = given.get(name.lower()), one.metadata["kind"]
        if text is None or kind == "special":
            continue
        if isinstance(one.default, enum.Enum):
            found[one.name] = _choice(type(one.default), name, text)
        else:
            found[one.name] = READERS[kind or "flag"](name, text)
    return found


def parse_options(options: Mapping[str, str], *, is_classic: bool = False) -> ReadOptions:
    """The options of a DataFrame reader, in any case. Raises ConfigurationError: an option is unknown, is missing, or
    cannot be read."""
    given = without_catalog({name.lower(): value for name, value in options.items()})
    expect_known(given, NAMES)
    host = given.get("host") or None
    if bool(given.get("path")) == bool(host):
        raise ConfigurationError("give either a path, as in load(PATH), or option host")
    path = local_path(given.get("path") or "")
    is_classic = is_classic or (bool(path) and holds_traditional(place(path)))
    found = read_fields(ReadOptions, given) | {"path": path, "host": host, "is_classic": is_classic}
    schema_mode, schema_at = parse_schema_mode("option schemaMode", given.get("schemamode", "latest"))
    found |= {"schema_mode": schema_mode, "schema_at": schema_at}
    stages = _stages(given, is_live=host is not None)
    found["declarations"] = _declarations(given.get("schema"), stages, found.get("name_case"))
    if found.get("table") is not None:
        found["tables"] = (found["table"],)
    parsed = ReadOptions(stages=(stages,) if stages else (), **found)
    kind = parsed.granularity
    if parsed.table is not None and kind is not Granularity.ROWS:
        raise ConfigurationError("option table gives one table's rows; leave granularity out, or say rows")
    if host is not None and schema_at is not None:
        raise ConfigurationError("option schemaMode at:GTID: a primary does not tell what its tables were; give a path")
    problems = {
        "a primary tells nothing of its files": host is not None,
        "traditional binlog files have none": is_classic,
        "a log after stages has none": bool(stages),
    }
    for problem, is_so in problems.items():
        if is_so and kind in (Granularity.PAGES, Granularity.RECORDS):
            raise ConfigurationError(f"granularity {kind.value}: {problem}")
    return with_keys(parsed)


def _stages(given: Mapping[str, str], *, is_live: bool) -> StageOptions:
    """Raises ConfigurationError: a value cannot be read, or a primary cannot be read so."""
    found: dict[str, object] = {name: given[shown.lower()] for name, shown in STAGES.items() if shown.lower() in given}
    if "drop_empty" in found:
        found["drop_empty"] = flag_of("dropEmpty", str(found["drop_empty"]))
    stages = cast(StageOptions, given_stages(found))
    try:
        check_stages(stages)
    except ConfigurationError as error:
        raise named_as_options(error) from None
    except GtidError as error:
        raise ConfigurationError(f"options after, until: {error}") from None
    unfit = next((STAGES[name] for name in _OF_FILES if name in found), None) if is_live else None
    if unfit is not None:
        raise ConfigurationError(
            f"option {unfit}: a primary is read by its own GTIDs, from startingGtid to endingGtid; give a path"
        )
    return stages


def _declarations(text: str | None, stages: StageOptions, name_case: NameCase | None) -> dict[str, dict[str, str]]:
    case = name_case or NameCase.EXACT
    try:
        found = parse_declarations_option(text).items()
        return {str(renamed_table(parse_table_name(name), stages, lambda: case)): one for name, one in found}
    except ConfigurationError as error:
        raise named_as_options(error) from None


def is_of_catalog(given: Mapping[str, str]) -> bool:
    return given.get("provider", "").lower() in FORMATS


def without_catalog(given: Mapping[str, str]) -> dict[str, str]:
    """Options without what Spark's catalog adds to CREATE TABLE … USING; names are in small letters."""
    if not is_of_catalog(given):
        return dict(given)
    own = {name: value for name, value in given.items() if name not in OF_CATALOG and not name.startswith(COPY)}
    if not own.get("host") and "location" in given:
        own.setdefault("path", given["location"])
    return own


def local_path(path: str) -> str:
    """A whole path of this machine, also from a URL, or the URL of an object: workers have another directory."""
    return whole_place(path) if path else ""


# Values ---------------------------------------------------------------------------------------


def _shown(value: str) -> str:
    return repr(value) if len(value) <= VALUE_TEXT_MAX else f"{value[:VALUE_TEXT_MAX]!r}..."


def _wrong(name: str, value: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"option {name} is {_shown(value)}, expected {expected}")


def _choice(kind: type[enum.Enum], name: str, value: str) -> enum.Enum:
    try:
        return kind(value.strip().lower())
    except ValueError:
        raise _wrong(name, value, f"one of {', '.join(str(one.value) for one in kind)}") from None


def _table(name: str, text: str) -> str | None:
    text = text.strip()
    try:
        if text and parse_table_pattern(text).has_wildcard:
            raise ConfigurationError(f"{_shown(text)} has a wildcard: expected database.table without * and ?")
        return str(parse_table_name(text)) if text else None
    except ConfigurationError as error:
        raise ConfigurationError(f"option {name}: {error}") from None


def _tables(name: str, value: str) -> tuple[str, ...]:
    """Names or patterns. One without a database would find nothing, and an empty answer looks like a true one."""
    try:
        return tuple(str(parse_table_pattern(text)) for text in divided(value, ",") if text)
    except ConfigurationError as error:
        raise ConfigurationError(f"option {name}: {error}") from None


def _position(name: str, value: str) -> str:
    try:
        return str(GtidPosition.parse(value))
    except GtidError as error:
        raise ConfigurationError(f"option {name}: {error}") from None


def _starting_offsets(name: str, value: str) -> str:
    text = value.strip()
    if text.lower() not in ("earliest", "latest"):
        position_of_option(text)
    return text


def _time(name: str, value: str) -> float:
    """RFC 3339, or seconds since 1970; without a zone it is UTC."""
    text = value.strip()
    try:
        if not _SECONDS.fullmatch(text):
            moment = datetime.datetime.fromisoformat(text)
            return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
        if float(text) < NUMBER_END:
            return float(text)
    except ValueError:
        pass
    raise _wrong(name, value, "2026-01-31T12:00:00Z, or seconds since 1970 below 2^63")


def list_of(value: str | None) -> tuple[str, ...]:
    """Names between commas; one in backquotes, as `a,b`, may have commas."""
    parts = divided(value or "", ",")
    return tuple(_QUOTED.sub(lambda match: match[1].replace("``", "`"), part) for part in parts if part)


def listed(names: Iterable[str]) -> str:
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


def number_of(name: str, value: str, *, first: int = 0, end: int = NUMBER_END) -> int:
    """In ASCII digits, from `first` on and below `end`."""
    text = value.strip()
    digits = text.lstrip("0")
    is_number = text.isascii() and text.isdecimal() and len(digits) <= len(str(NUMBER_END))
    if not is_number or not first <= int(digits or "0") < end:
        raise _wrong(name, value, f"a whole number from {first} on, below {_limit_text(end)}")
    return int(digits or "0")


def size_of(name: str, value: str, *, end: int = NUMBER_END) -> int:
    """A count, or bytes with k, m, g or t: above 0, and below `end`."""
    try:
        size = parse_size(value)
    except ConfigurationError:
        size = 0
    if not 0 < size < end:
        expected = "a whole number above 0, also with k, m, g or t, below"
        raise _wrong(name, value, f"{expected} {_limit_text(end)}")
    return size


def _limit_text(end: int) -> str:
    return str(end) if end <= PORT_END else f"2^{end.bit_length() - 1}"


def flag_of(name: str, value: str) -> bool:
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise _wrong(name, value, "true or false")
    return text == "true"


READERS: dict[str, Callable[[str, str], Any]] = {
    "text": lambda name, text: text,
    "flag": flag_of,
    "names": lambda name, text: list_of(text),
    "domains": lambda name, text: frozenset(number_of(name, part, end=ID_END) for part in list_of(text)),
    "position": _position,
    "time": _time,
    "table": _table,
    "tables": _tables,
    "offsets": _starting_offsets,
    "size": size_of,
    "files": partial(size_of, end=COUNT_OF_FILES_END),
    "domain": partial(number_of, end=ID_END),
    "server": partial(number_of, first=1, end=ID_END),
    "port": partial(number_of, first=1, end=PORT_END),
    "case": lambda name, text: parse_name_case(f"option {name}", text),
    "event": lambda name, text: parse_row_event_max(text),
}


# Declarations ---------------------------------------------------------------------------------


def parse_declarations_option(value: str | None) -> dict[str, dict[str, str]]:
    """Table -> column -> type, from JSON, from CREATE TABLE statements, or from a file with one of them."""
    if value is None:
        return {}
    text, where = value.strip(), "option schema"
    if not text.startswith("{") and not _SCRIPT.match(text):
        where = f"option schema: {text}"
        try:
            text = Path(local_path(text)).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else "not a file of text in UTF-8"
            raise ConfigurationError(f"{where}: {problem}") from None
    is_json = text.startswith("{")
    try:
        tables = json.loads(text).items() if is_json else parse_declarations(text)
        found = {
            str(parse_table_name(str(table))): {str(name): str(declared) for name, declared in columns.items()}
            for table, columns in tables
        }
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    except (ValueError, AttributeError, RecursionError) as error:
        if not is_json:
            raise
        raise ConfigurationError(f"{where} is no JSON of table -> column -> type: {error}") from None
    if not found:
        raise ConfigurationError(f"{where} has no CREATE TABLE statement with columns")
    return found
