"""What is to be read of a log, and how values become cells."""

import enum
from dataclasses import dataclass, field, replace
from typing import Any

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.stages.options import StageOptions
from ibbmaster.logs.stages.span import LogSpan
from ibbmaster.rows.shape import SchemaMode
from ibbmaster.schema.name_case import NameCase


class Granularity(enum.Enum):
    PAGES = "pages"
    RECORDS = "records"
    EVENTS = "events"
    GROUPS = "groups"
    ROWS = "rows"
    FAULTS = "faults"


class ZeroDates(enum.Enum):
    """What a typed table has for no dates, as 0000-00-00."""

    NULL = "null"
    TEXT = "text"  # date and time columns are strings


class Undecodable(enum.Enum):
    """What becomes of unreadable values."""

    FAIL = "fail"
    BINARY = "binary"  # their bytes, of a typed table in a column of their own


def special(name: str) -> dict[str, str]:
    """Metadata of option `name`, whose text cannot be read by itself."""
    return {"name": name, "kind": "special"}


def option(name: str, kind: str = "", default: Any = None) -> Any:
    return field(default=default, metadata={"name": name, "kind": kind})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a query, as errors list them. Sent to workers, so it holds only strings, numbers and containers of
    them."""

    path: str = field(metadata=special("path"))
    granularity: Granularity = option("granularity", default=Granularity.ROWS)
    starting_gtid: str | None = option("startingGtid", "position")
    ending_gtid: str | None = option("endingGtid", "position")
    starting_time: float | None = option("startingTimestamp", "time")  # seconds since 1970
    ending_time: float | None = option("endingTimestamp", "time")
    tables: tuple[str, ...] = option("tables", "tables", ())
    table: str | None = option("table", "table")
    domains: frozenset[int] = option("domains", "domains", frozenset())
    columns: tuple[str, ...] = option("columns", "names", ())
    is_strict: bool = option("failOnDataLoss", default=True)
    partition_bytes: int = option("partitionBytes", "size", 256 << 20)  # smaller ones cost 0.1 s of a core each
    declarations: dict[str, dict[str, str]] = field(default_factory=dict, metadata=special("schema"))
    schema_mode: SchemaMode = option("schemaMode", "special", SchemaMode.LATEST)
    zero_dates: ZeroDates = option("zeroDates", default=ZeroDates.NULL)
    completes_keys: bool = option("completeKeys", default=False)
    starting_offsets: str = option("startingOffsets", "offsets", "earliest")
    bytes_per_trigger_max: int | None = option("maxBytesPerTrigger", "size")
    groups_per_trigger_max: int | None = option("maxGroupsPerTrigger", "size")
    files_per_trigger_max: int | None = option("maxFilesPerTrigger", "files")
    host: str | None = option("host", "text")
    port: int = option("port", "port", 3306)
    user: str = option("user", "text", "root")
    password: str = field(default="", repr=False, metadata={"name": "password", "kind": "text"})
    uses_tls: bool = option("tls", default=False)
    server_id: int = option("serverId", "server", 4_000_000_001)
    undecodable: Undecodable = option("onUndecodable", default=Undecodable.FAIL)
    name_case: NameCase | None = option("lowerCaseTableNames", "case")  # None: as the log says
    row_event_max: int | None = option("maxRowEventBytes", "event")  # of one, unpacked; None: what a log can have
    is_classic: bool = False
    schema_at: str | None = None  # GTID of the place whose shape a table has, with SchemaMode.AT
    uses_kernels: bool = True
    base: str | None = None
    stages: tuple[StageOptions, ...] = ()  # names and GTIDs are those after them
    spans: tuple[LogSpan | None, ...] = ()  # what each stage takes of the log, once known


def with_keys(options: ReadOptions) -> ReadOptions:
    """Names of tables get the form that the log's server compares."""
    case = options.name_case
    if case is None or not case.folds:
        return options
    return replace(
        options,
        table=None if options.table is None else case.key(options.table),
        tables=tuple(map(case.key, options.tables)),
        declarations={case.key(name): declared for name, declared in options.declarations.items()},
    )


def parse_schema_mode(where: str, text: str) -> tuple[SchemaMode, str | None]:
    """`latest`, `asWritten` or `at:GTID`, in any case, with its position. Raises ConfigurationError: it is none of
    them."""
    word, _, behind = text.strip().partition(":")
    for mode in SchemaMode:
        if word.lower() == mode.value.lower() and bool(behind.strip()) == (mode is SchemaMode.AT):
            try:
                return mode, str(GtidPosition.parse(behind)) if mode is SchemaMode.AT else None
            except GtidError as error:
                raise ConfigurationError(f"{where}: {error}") from None
    raise ConfigurationError(f"{where} is {text[:60]!r}, expected latest, asWritten or at:GTID")
