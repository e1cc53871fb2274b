"""What is to be read of a log, and how values become cells."""

import enum
from dataclasses import dataclass, field, replace

from ibbmaster.errors import ConfigurationError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.rows.shape import SchemaMode
from ibbmaster.schema.name_case import NameCase
from ibbmaster.stages.options import StageOptions
from ibbmaster.stages.span import LogSpan

SERVER_ID = 4_000_000_001  # as a replica of a primary
PARTITION_BYTES = 256 << 20  # smaller ones waste the machine: each task costs 0.1 s of a core


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a query. Holds only strings, numbers and containers of them: it is sent to workers."""

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
    schema_mode: SchemaMode = SchemaMode.LATEST
    schema_at: str | None = None  # GTID of the place whose shape a table has, with SchemaMode.AT
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
    completes_keys: bool = False  # of a typed table: an image after an update has what the one before it has
    uses_kernels: bool = True
    name_case: NameCase | None = None  # lower_case_table_names of the log's server; None: what the log says
    row_event_max: int | None = None  # bytes of one, put together and unpacked; None: what a log can have
    base: str | None = None  # the path of a dump that the log goes on from
    stages: tuple[StageOptions, ...] = ()  # which the log goes through first; names and GTIDs are those after them
    spans: tuple[LogSpan | None, ...] = ()  # the part of the log that each of these takes, once they are found


def with_keys(options: ReadOptions) -> ReadOptions:
    """Options whose tables are called as they are found by, where it is said how names are compared."""
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
    """`latest`, `asWritten` or `at:GTID`, in any case; with the position after `at:`. `where` is for the error. Raises
    ConfigurationError: it is none of them."""
    word, _, behind = text.strip().partition(":")
    for mode in SchemaMode:
        if word.lower() == mode.value.lower() and bool(behind.strip()) == (mode is SchemaMode.AT):
            try:
                return mode, str(GtidPosition.parse(behind)) if mode is SchemaMode.AT else None
            except GtidError as error:
                raise ConfigurationError(f"{where}: {error}") from None
    raise ConfigurationError(f"{where} is {text[:60]!r}, expected latest, asWritten or at:GTID")
