"""The options of the source, read and checked once, on the driver."""

from __future__ import annotations

import datetime
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.event.rows.ddl import parse_declarations
from ibbmaster.gtid import GtidPosition

SERVER_ID = 4_000_000_001  # as a replica of a primary
PARTITION_BYTES = 256 << 20  # smaller ones waste the machine: each task costs 0.1 s of a core
_Choice = TypeVar("_Choice", bound=enum.Enum)
SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Granularity(enum.Enum):
    """What a row of the DataFrame is."""

    PAGES = "pages"
    RECORDS = "records"
    EVENTS = "events"
    GROUPS = "groups"
    ROWS = "rows"
    FAULTS = "faults"


class ZeroDates(enum.Enum):
    """What becomes of dates that are no days, as 0000-00-00, in the columns of a typed table."""

    NULL = "null"
    TEXT = "text"  # date and time columns are strings


class Undecodable(enum.Enum):
    """What becomes of values that cannot be read."""

    FAIL = "fail"
    BINARY = "binary"  # their bytes, of a typed table in a column of their own


NAMES = (
    "path",
    "granularity",
    "startingGtid",
    "endingGtid",
    "startingTimestamp",
    "endingTimestamp",
    "tables",
    "table",
    "domains",
    "columns",
    "failOnDataLoss",
    "partitionBytes",
    "schema",
    "zeroDates",
    "startingOffsets",
    "maxBytesPerTrigger",
    "maxGroupsPerTrigger",
    "maxFilesPerTrigger",
    "host",
    "port",
    "user",
    "password",
    "tls",
    "serverId",
    "onUndecodable",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a user asked for. Holds only strings, numbers and containers of them: it is sent to workers."""

    path: str
    is_classic: bool = False
    granularity: Granularity = Granularity.ROWS
    starting_gtid: str | None = None
    ending_gtid: str | None = None
    starting_time: float | None = None  # seconds since 1970
    ending_time: float | None = None
    tables: tuple[str, ...] = ()
    table: str | None = None  # one table, with columns of its own
    domains: frozenset[int] = frozenset()
    columns: tuple[str, ...] = ()
    is_strict: bool = True  # failOnDataLoss
    partition_bytes: int = PARTITION_BYTES
    declarations: dict[str, dict[str, str]] = field(default_factory=dict)
    zero_dates: ZeroDates = ZeroDates.NULL
    starting_offsets: str = "earliest"
    bytes_per_trigger_max: int | None = None
    groups_per_trigger_max: int | None = None
    files_per_trigger_max: int | None = None
    host: str | None = None  # of a primary, instead of a path
    port: int = 3306
    user: str = "root"
    password: str = field(default="", repr=False)  # or the variable IBBMASTER_PASSWORD of driver and workers
    uses_tls: bool = False
    server_id: int = SERVER_ID
    undecodable: Undecodable = Undecodable.FAIL


def parse_options(options: Mapping[str, str], *, is_classic: bool = False) -> ReadOptions:
    """Read the options of a DataFrame reader; names are compared without their case.

    Raises:
        ConfigurationError: an option is unknown, is missing, or cannot be read.
    """
    given = {name.lower(): value for name, value in options.items()}
    known = {name.lower(): name for name in NAMES}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigurationError(f"unknown option {', '.join(unknown)}; known are {', '.join(NAMES)}")
    host = given.get("host") or None
    if bool(given.get("path")) == bool(host):
        raise ConfigurationError("give either a path, as in load(PATH), or option host")
    table = given.get("table")
    parsed = ReadOptions(
        path=local_path(given.get("path") or ""),
        is_classic=is_classic,
        granularity=_choice(Granularity, "granularity", given.get("granularity", "rows")),
        starting_gtid=_position("startingGtid", given.get("startinggtid")),
        ending_gtid=_position("endingGtid", given.get("endinggtid")),
        starting_time=_time("startingTimestamp", given.get("startingtimestamp")),
        ending_time=_time("endingTimestamp", given.get("endingtimestamp")),
        tables=(table,) if table else list_of(given.get("tables")),
        table=table or None,
        domains=frozenset(number_of("domains", part) for part in list_of(given.get("domains"))),
        columns=list_of(given.get("columns")),
        is_strict=flag_of("failOnDataLoss", given.get("failondataloss", "true")),
        partition_bytes=size_of("partitionBytes", given.get("partitionbytes")) or PARTITION_BYTES,
        declarations=parse_declarations_option(given.get("schema")),
        zero_dates=_choice(ZeroDates, "zeroDates", given.get("zerodates", "null")),
        starting_offsets=given.get("startingoffsets", "earliest"),
        bytes_per_trigger_max=size_of("maxBytesPerTrigger", given.get("maxbytespertrigger")),
        groups_per_trigger_max=size_of("maxGroupsPerTrigger", given.get("maxgroupspertrigger")),
        files_per_trigger_max=size_of("maxFilesPerTrigger", given.get("maxfilespertrigger")),
        host=host,
        port=number_of("port", given.get("port", "3306")),
        user=given.get("user", "root"),
        password=given.get("password", ""),
        uses_tls=flag_of("tls", given.get("tls", "false")),
        server_id=number_of("serverId", given.get("serverid", str(SERVER_ID))),
        undecodable=_choice(Undecodable, "onUndecodable", given.get("onundecodable", "fail")),
    )
    if parsed.table is not None and parsed.granularity is not Granularity.ROWS:
        raise ConfigurationError("option table gives one table's rows; leave granularity out, or say rows")
    if parsed.table is not None and "." not in parsed.table:
        raise ConfigurationError(f"option table is {parsed.table!r}, expected database.table")
    if host is not None and parsed.granularity in (Granularity.PAGES, Granularity.RECORDS):
        raise ConfigurationError(f"granularity {parsed.granularity.value}: a primary tells nothing of its files")
    is_of_pages = parsed.granularity in (Granularity.PAGES, Granularity.RECORDS)
    if is_of_pages and is_classic:
        raise ConfigurationError(f"granularity {parsed.granularity.value}: traditional binlog files have none")
    return parsed


def local_path(path: str) -> str:
    """A path of this machine, also given as a URL."""
    return path.removeprefix("file://") if path.startswith("file://") else path.removeprefix("file:")


def _choice(kind: type[_Choice], name: str, value: str) -> _Choice:
    try:
        return kind(value.strip().lower())
    except ValueError:
        choices = ", ".join(str(one.value) for one in kind)
        raise ConfigurationError(f"option {name} is {value!r}, expected one of {choices}") from None


def _position(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return str(GtidPosition.parse(value))
    except GtidError as error:
        raise ConfigurationError(f"option {name}: {error}") from None


def _time(name: str, value: str | None) -> float | None:
    """RFC 3339, or seconds since 1970; without a zone it is UTC."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        raise ConfigurationError(f"option {name} is {value!r}, expected 2026-01-31T12:00:00Z or seconds") from None
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()


def list_of(value: str | None) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def number_of(name: str, value: str) -> int:
    """A number of an option; `name` is for the error."""
    if not value.isdecimal():
        raise ConfigurationError(f"option {name} has {value!r}, expected numbers")
    return int(value)


def size_of(name: str, value: str | None) -> int | None:
    """A count, or bytes with k, m or g behind it."""
    if value is None:
        return None
    text = value.strip().lower().removesuffix("b")
    unit = text[-1:] if text[-1:] in "kmg" else ""
    digits = text.removesuffix(unit) if unit else text
    if not digits.isdecimal() or not int(digits):
        raise ConfigurationError(f"option {name} is {value!r}, expected a number above 0, also with k, m or g")
    return int(digits) * SIZE_UNITS[unit]


def flag_of(name: str, value: str) -> bool:
    """Whether an option says true; `name` is for the error."""
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"option {name} is {value!r}, expected true or false")
    return text == "true"


def parse_declarations_option(value: str | None) -> dict[str, dict[str, str]]:
    """Table -> column -> type, from JSON, from CREATE TABLE statements, or from a file with one of them."""
    if value is None:
        return {}
    text = value.strip()
    if not text.startswith("{") and not text.lower().startswith("create"):
        try:
            text = Path(local_path(text)).read_text().strip()
        except OSError as error:
            raise ConfigurationError(f"option schema: {error}") from None
    if not text.startswith("{"):
        return dict(parse_declarations(text))
    try:
        found = json.loads(text)
        return {
            str(table): {str(name): str(declared) for name, declared in columns.items()}
            for table, columns in found.items()
        }
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(f"option schema is no JSON of table -> column -> type: {error}") from None
