"""The options of the writer, read and checked once, on the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ibbmaster.arrow.shape import field_name, own_name
from ibbmaster.disk.place import local_place
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.encoding import WrittenTable, written_table
from ibbmaster.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES, LogLimits
from ibbmaster.spark.options import ID_END, flag_of, list_of, local_path, number_of, parse_declarations_option, size_of

NAMES = (
    *("path", "table", "schema", "primaryKey", "domain", "serverId", "groupRows", "createTables", "maxFileBytes"),
    "stateIntervalBytes",
)
GROUP_ROWS = 100
EVENT_COLUMNS = ("_gtid", "event_no", "data")
CHANGE_COLUMNS = ("_table", "_change_type", "before", "after")
EXTRA_COLUMNS = ("_gtid", "_domain", "_server_id", "_seq", "_commit_ts", "_file_no", "_offset")
CHANGE_EXTRA_COLUMNS = (*EXTRA_COLUMNS, "_table", "_change_type", "_change_no", "_absent")
TYPES = {  # Spark's simple types as columns of a table that is not declared
    "boolean": "tinyint",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "string": "longtext",
    "binary": "longblob",
    "date": "date",
    "timestamp": "timestamp(6) null",
    "timestamp_ntz": "datetime(6)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a writer. Sent to workers, so it holds only strings, numbers and containers of them."""

    path: str
    columns: tuple[str, ...]  # of the DataFrame
    table: str | None = None  # whose columns the DataFrame has; None: `CHANGE_COLUMNS`, or `EVENT_COLUMNS`
    declarations: dict[str, dict[str, str]] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    domain_id: int = 0
    server_id: int = 1
    group_rows: int = GROUP_ROWS
    creates_tables: bool = True
    max_file_bytes: int = MAX_FILE_BYTES
    state_interval_bytes: int = STATE_INTERVAL_BYTES
    overwrites: bool = False

    @property
    def is_of_events(self) -> bool:
        """Whether each row is an event as it is."""
        return self.table is None and "data" in self.columns

    @property
    def has_gtids(self) -> bool:
        return "_gtid" in self.columns

    def tables(self) -> dict[str, WrittenTable]:
        """Every table that may be written, by name."""
        return {
            name: written_table(name, columns, table_id=number, primary_key=self.primary_key if self.table else ())
            for number, (name, columns) in enumerate(self.declarations.items(), start=1)
        }


def parse_write_options(
    options: Mapping[str, str], fields: Mapping[str, str], *, overwrites: bool = False
) -> WriteOptions:
    """Read the options of a DataFrame writer; `fields` are the DataFrame's columns with Spark's names of their types.
    Raises ConfigurationError: an option is unknown, is missing or cannot be read, or the columns do not fit."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(given) - {name.lower() for name in NAMES})
    if unknown:
        raise ConfigurationError(f"unknown option {', '.join(unknown)}; known are {', '.join(NAMES)}")
    if not given.get("path"):
        raise ConfigurationError("option path is missing: save(PATH)")
    table = given.get("table") or None
    has_gtids = "_gtid" in fields
    declarations = parse_declarations_option(given.get("schema"))
    primary_key = list_of(given.get("primarykey"))
    if table is not None and table not in declarations:
        declarations = {table: _derived(fields, primary_key)}
    elif table is not None:
        declarations = {table: declarations[table]}
    parsed = WriteOptions(
        path=str(local_place(local_path(given["path"]), "a log of a DataFrame")),
        columns=tuple(fields),
        table=table,
        declarations=declarations,
        primary_key=tuple(map(own_name, primary_key)),
        domain_id=number_of("domain", given.get("domain", "0"), end=ID_END),
        server_id=number_of("serverId", given.get("serverid", "1"), first=1, end=ID_END),
        group_rows=size_of("groupRows", given.get("grouprows")) or GROUP_ROWS,
        creates_tables=flag_of("createTables", given.get("createtables", "false" if has_gtids else "true")),
        max_file_bytes=size_of("maxFileBytes", given.get("maxfilebytes")) or MAX_FILE_BYTES,
        state_interval_bytes=size_of("stateIntervalBytes", given.get("stateintervalbytes")) or STATE_INTERVAL_BYTES,
        overwrites=overwrites,
    )
    _check(parsed, fields)
    return parsed


def _derived(fields: Mapping[str, str], primary_key: tuple[str, ...]) -> dict[str, str]:
    """Columns of a table from those of the DataFrame; columns of a key cannot be NULL."""
    found = {}
    for name, kind in fields.items():
        if name in CHANGE_EXTRA_COLUMNS:
            continue
        declared = kind if kind.startswith("decimal") else TYPES.get(kind)
        if declared is None:
            raise ConfigurationError(
                f"column {name} of type {kind} cannot be written; give its type with option schema"
            )
        own = own_name(name)
        found[own] = declared.removesuffix(" null") if {name, own} & {*primary_key} else declared
    return found


def _check(options: WriteOptions, fields: Mapping[str, str]) -> None:
    if options.primary_key and options.table is None:
        raise ConfigurationError("option primaryKey needs option table: elsewhere option schema tells the keys")
    if options.table is None:
        wanted = EVENT_COLUMNS if options.is_of_events else CHANGE_COLUMNS
        missing = [name for name in wanted if name not in fields]
        if missing:
            raise ConfigurationError(
                f"the DataFrame has no column {missing[0]}: it needs {', '.join(EVENT_COLUMNS)} for events, "
                f"{', '.join(CHANGE_COLUMNS)} for changes of rows, or option table for the rows of one table"
            )
        if not options.is_of_events and not options.declarations:
            raise ConfigurationError("option schema is missing: CREATE TABLE statements of the tables that are written")
    else:
        missing = [name for name in options.declarations[options.table] if field_name(name) not in fields]
        if missing:
            raise ConfigurationError(f"the DataFrame has no column {missing[0]}, which {options.table} has")
    if options.has_gtids and options.creates_tables:
        raise ConfigurationError("option createTables needs GTIDs of its own: leave column _gtid out")
    try:  # here, and not when the tasks are done and their runs are merged
        LogLimits(max_file_bytes=options.max_file_bytes, state_interval_bytes=options.state_interval_bytes)
    except ConfigurationError as error:
        raise ConfigurationError(f"options maxFileBytes and stateIntervalBytes: {error}") from None
    options.tables()
