"""The options of the source, read and checked once, on the driver."""

import datetime
import enum
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar, cast

from ibbmaster.arrow.read_options import (
    PARTITION_BYTES,
    SERVER_ID,
    Granularity,
    ReadOptions,
    Undecodable,
    ZeroDates,
    parse_schema_mode,
    with_keys,
)
from ibbmaster.arrow.staging import named_as_options, option_names
from ibbmaster.classic.packing import holds_traditional
from ibbmaster.disk.place import place, whole_place
from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import ID_MAX, GtidPosition
from ibbmaster.log.large_rows import parse_row_event_max
from ibbmaster.schema.declarations import parse_declarations
from ibbmaster.schema.name_case import NameCase, parse_name_case
from ibbmaster.sizes import parse_size
from ibbmaster.spark.offset import position_of_option
from ibbmaster.sqltext.table_name import divided, parse_table_name, parse_table_pattern
from ibbmaster.stages.options import StageOptions, check_stages, given_stages, renamed_table

NUMBER_END = 1 << 63  # Spark's and Arrow's largest numbers have 64 bits, one for the sign
COUNT_OF_FILES_END = 1 << 31  # as in Spark's ReadMaxFiles
PORT_END = 1 << 16
ID_END = ID_MAX + 1  # of domains and servers
VALUE_TEXT_MAX = 60  # characters of a value in an error
_Choice = TypeVar("_Choice", bound=enum.Enum)
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SCRIPT = re.compile(r"(?:create|use)\s|--\s|/\*", re.IGNORECASE)  # how one begins, and no path
_QUOTED = re.compile(r"(?<![^.])`((?:[^`]|``)*)`")

STAGES = option_names()  # by their names in Python
_OF_FILES = ("after", "until", "map_server_id", "map_domain")  # of logs with places, and with GTIDs of their own
FORMATS = ("ibb", "mariadb_binlog")
OF_CATALOG = frozenset(("location", "provider", "owner", "comment", "external", "is_managed_location", "collation"))
COPY = "option."  # in front of a second copy of an option
NAMES = (
    *("path", "granularity", "startingGtid", "endingGtid", "startingTimestamp", "endingTimestamp", "tables", "table"),
    *("domains", "columns", "failOnDataLoss", "partitionBytes", "schema", "schemaMode", "zeroDates", "completeKeys"),
    *("startingOffsets", "maxBytesPerTrigger", "maxGroupsPerTrigger", "maxFilesPerTrigger", "host", "port", "user"),
    *("password", "tls", "serverId", "onUndecodable", "lowerCaseTableNames", "maxRowEventBytes"),
    *STAGES.values(),
)


def schema_options(schema: str | None, name_case: int | None) -> dict[str, str]:
    """The options that say what the log does not: tables, and how its server compares their names."""
    given = {} if schema is None else {"schema": schema}
    return given if name_case is None else {**given, "lowerCaseTableNames": str(name_case)}


def parse_options(options: Mapping[str, str], *, is_classic: bool = False) -> ReadOptions:
    """Read the options of a DataFrame reader; names are compared without their case. Raises ConfigurationError: an
    option is unknown, is missing, or cannot be read."""
    given = without_catalog({name.lower(): value for name, value in options.items()})
    known = {name.lower(): name for name in NAMES}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigurationError(f"unknown option {', '.join(unknown)}; known are {', '.join(NAMES)}")
    host = given.get("host") or None
    if bool(given.get("path")) == bool(host):
        raise ConfigurationError("give either a path, as in load(PATH), or option host")
    table = _table(given.get("table", "").strip())
    schema_mode, schema_at = parse_schema_mode("option schemaMode", given.get("schemamode", "latest"))
    path = local_path(given.get("path") or "")
    is_classic = is_classic or (bool(path) and holds_traditional(place(path)))
    name_case = parse_name_case("option lowerCaseTableNames", given.get("lowercasetablenames"))
    stages = _stages(given, is_live=host is not None)
    parsed = ReadOptions(
        path=path,
        is_classic=is_classic,
        granularity=_choice(Granularity, "granularity", given.get("granularity", "rows")),
        starting_gtid=_position("startingGtid", given.get("startinggtid")),
        ending_gtid=_position("endingGtid", given.get("endinggtid")),
        starting_time=_time("startingTimestamp", given.get("startingtimestamp")),
        ending_time=_time("endingTimestamp", given.get("endingtimestamp")),
        tables=(table,) if table else _table_patterns(given.get("tables")),
        table=table,
        domains=frozenset(number_of("domains", part, end=ID_END) for part in list_of(given.get("domains"))),
        columns=list_of(given.get("columns")),
        is_strict=flag_of("failOnDataLoss", given.get("failondataloss", "true")),
        partition_bytes=size_of("partitionBytes", given.get("partitionbytes")) or PARTITION_BYTES,
        declarations=_declarations(given.get("schema"), stages, name_case),
        schema_mode=schema_mode,
        schema_at=schema_at,
        zero_dates=_choice(ZeroDates, "zeroDates", given.get("zerodates", "null")),
        completes_keys=flag_of("completeKeys", given.get("completekeys", "false")),
        starting_offsets=_starting_offsets(given.get("startingoffsets", "earliest")),
        bytes_per_trigger_max=size_of("maxBytesPerTrigger", given.get("maxbytespertrigger")),
        groups_per_trigger_max=size_of("maxGroupsPerTrigger", given.get("maxgroupspertrigger")),
        files_per_trigger_max=size_of("maxFilesPerTrigger", given.get("maxfilespertrigger"), end=COUNT_OF_FILES_END),
        host=host,
        port=number_of("port", given.get("port", "3306"), first=1, end=PORT_END),
        user=given.get("user", "root"),
        password=given.get("password", ""),
        uses_tls=flag_of("tls", given.get("tls", "false")),
        server_id=number_of("serverId", given.get("serverid", str(SERVER_ID)), first=1, end=ID_END),
        undecodable=_choice(Undecodable, "onUndecodable", given.get("onundecodable", "fail")),
        name_case=name_case,
        row_event_max=parse_row_event_max(given.get("maxroweventbytes")),
        stages=(stages,) if stages else (),
    )
    if parsed.table is not None and parsed.granularity is not Granularity.ROWS:
        raise ConfigurationError("option table gives one table's rows; leave granularity out, or say rows")
    if host is not None and schema_at is not None:
        raise ConfigurationError("option schemaMode at:GTID: a primary does not tell what its tables were; give a path")
    if host is not None and parsed.granularity in (Granularity.PAGES, Granularity.RECORDS):
        raise ConfigurationError(f"granularity {parsed.granularity.value}: a primary tells nothing of its files")
    is_of_pages = parsed.granularity in (Granularity.PAGES, Granularity.RECORDS)
    if is_of_pages and is_classic:
        raise ConfigurationError(f"granularity {parsed.granularity.value}: traditional binlog files have none")
    if is_of_pages and stages:
        raise ConfigurationError(f"granularity {parsed.granularity.value}: a log after stages has none")
    return with_keys(parsed)


def _stages(given: Mapping[str, str], *, is_live: bool) -> StageOptions:
    """What the log goes through first. Raises ConfigurationError: a value cannot be read, or a primary cannot be read
    so."""
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
    """What is declared of the tables in the log, by the names that they have after the stages."""
    case = name_case or NameCase.EXACT
    try:
        found = parse_declarations_option(text).items()
        return {str(renamed_table(parse_table_name(name), stages, lambda: case)): one for name, one in found}
    except ConfigurationError as error:
        raise named_as_options(error) from None


def is_of_catalog(given: Mapping[str, str]) -> bool:
    """Whether options are those with which Spark's catalog makes a table: CREATE TABLE … USING."""
    return given.get("provider", "").lower() in FORMATS


def without_catalog(given: Mapping[str, str]) -> dict[str, str]:
    """Options without what Spark's catalog adds to those of CREATE TABLE … USING; names are in small letters."""
    if not is_of_catalog(given):
        return dict(given)
    own = {name: value for name, value in given.items() if name not in OF_CATALOG and not name.startswith(COPY)}
    if not own.get("host") and "location" in given:
        own.setdefault("path", given["location"])
    return own


def local_path(path: str) -> str:
    """A whole path of this machine, also given as a URL, or the URL of an object: workers have another directory."""
    return whole_place(path) if path else ""


def _shown(value: str) -> str:
    return repr(value) if len(value) <= VALUE_TEXT_MAX else f"{value[:VALUE_TEXT_MAX]!r}..."


def _choice(kind: type[_Choice], name: str, value: str) -> _Choice:
    try:
        return kind(value.strip().lower())
    except ValueError:
        choices = ", ".join(str(one.value) for one in kind)
        raise ConfigurationError(f"option {name} is {_shown(value)}, expected one of {choices}") from None


def _table(text: str) -> str | None:
    try:
        if text and parse_table_pattern(text).has_wildcard:
            raise ConfigurationError(f"{_shown(text)} has a wildcard: expected database.table without * and ?")
        return str(parse_table_name(text)) if text else None
    except ConfigurationError as error:
        raise ConfigurationError(f"option table: {error}") from None


def _table_patterns(value: str | None) -> tuple[str, ...]:
    """Tables by name. One without its database would find nothing, and an empty answer looks like a true one."""
    try:
        return tuple(str(parse_table_pattern(text)) for text in divided(value or "", ",") if text)
    except ConfigurationError as error:
        raise ConfigurationError(f"option tables: {error}") from None


def _position(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return str(GtidPosition.parse(value))
    except GtidError as error:
        raise ConfigurationError(f"option {name}: {error}") from None


def _starting_offsets(value: str) -> str:
    text = value.strip()
    if text.lower() not in ("earliest", "latest"):
        position_of_option(text)
    return text


def _time(name: str, value: str | None) -> float | None:
    """RFC 3339, or seconds since 1970; without a zone it is UTC."""
    if value is None:
        return None
    text = value.strip()
    try:
        if not _SECONDS.fullmatch(text):
            moment = datetime.datetime.fromisoformat(text)
            return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
        if float(text) < NUMBER_END:
            return float(text)
    except ValueError:
        pass
    raise ConfigurationError(
        f"option {name} is {_shown(value)}, expected 2026-01-31T12:00:00Z, or seconds since 1970 below 2^63"
    )


def list_of(value: str | None) -> tuple[str, ...]:
    """What is between commas; a name in backquotes, as `a,b`, may have commas itself."""
    parts = divided(value or "", ",")
    return tuple(_QUOTED.sub(lambda match: match[1].replace("``", "`"), part) for part in parts if part)


def listed(names: Iterable[str]) -> str:
    """Names as an option that `list_of` reads."""
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


def number_of(name: str, value: str, *, first: int = 0, end: int = NUMBER_END) -> int:
    """A whole number of an option, from `first` on and below `end`; `name` is for the error."""
    number = _whole(value.strip())
    if number is None or not first <= number < end:
        raise ConfigurationError(
            f"option {name} is {_shown(value)}, expected a whole number from {first} on, below {_limit_text(end)}"
        )
    return number


def size_of(name: str, value: str | None, *, end: int = NUMBER_END) -> int | None:
    """A count, or bytes with k, m, g or t after it: above 0, and below `end`."""
    if value is None:
        return None
    try:
        size = parse_size(value)
    except ConfigurationError:
        size = 0
    if not 0 < size < end:
        raise ConfigurationError(
            f"option {name} is {_shown(value)}, expected a whole number above 0, also with k, m, g or t, "
            f"below {_limit_text(end)}"
        )
    return size


def _whole(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= len(str(NUMBER_END))
    return int(text.lstrip("0") or "0") if is_number else None


def _limit_text(end: int) -> str:
    return str(end) if end <= PORT_END else f"2^{end.bit_length() - 1}"


def flag_of(name: str, value: str) -> bool:
    """Whether an option says true; `name` is for the error."""
    text = value.strip().lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"option {name} is {_shown(value)}, expected true or false")
    return text == "true"


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
    found = _declarations_of_json(text, where) if text.startswith("{") else _declarations_of_script(text, where)
    if not found:
        raise ConfigurationError(f"{where} has no CREATE TABLE statement with columns")
    return found


def _declarations_of_script(text: str, where: str) -> dict[str, dict[str, str]]:
    try:
        return {str(parse_table_name(table)): columns for table, columns in parse_declarations(text)}
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _declarations_of_json(text: str, where: str) -> dict[str, dict[str, str]]:
    try:
        return {
            str(parse_table_name(str(table))): {str(name): str(declared) for name, declared in columns.items()}
            for table, columns in json.loads(text).items()
        }
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    except (ValueError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"{where} is no JSON of table -> column -> type: {error}") from None
