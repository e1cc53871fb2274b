"""The writer's options, read and checked once, on the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import rows_of
from ibbmaster.logs.log.limits import MAX_FILE_BYTES, STATE_INTERVAL_BYTES, LogLimits
from ibbmaster.replication.event.rows.encoding import WrittenTable, written_table
from ibbmaster.storage.disk.place import local_place
from ibbmaster.tables.arrow.options import (
    expect_known,
    local_path,
    option_fields,
    parse_declarations_option,
    read_fields,
)
from ibbmaster.tables.arrow.read_options import option, special
from ibbmaster.tables.arrow.shape import field_name, own_name

EVENT_COLUMNS = ("_gtid", "event_no", "data")
CHANGE_COLUMNS = ("_table", "_change_type", "before", "after")
EXTRA_COLUMNS = ("_gtid", "_domain", "_server_id", "_seq", "_commit_ts", "_file_no", "_offset")
CHANGE_EXTRA_COLUMNS = (*EXTRA_COLUMNS, "_table", "_change_type", "_change_no", "_absent")
TYPES = dict(rows_of(__package__, "types"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """As errors list them. Sent to workers, so it holds only strings, numbers and containers of them."""

    path: str = field(metadata=special("path"))
    columns: tuple[str, ...]  # of the DataFrame
    table: str | None = option("table", "text")  # None: `CHANGE_COLUMNS`, or `EVENT_COLUMNS`
    declarations: dict[str, dict[str, str]] = field(default_factory=dict, metadata=special("schema"))
    primary_key: tuple[str, ...] = option("primaryKey", "names", ())
    domain_id: int = option("domain", "domain", 0)
    server_id: int = option("serverId", "server", 1)
    group_rows: int = option("groupRows", "size", 100)
    creates_tables: bool = option("createTables", default=True)
    max_file_bytes: int = option("maxFileBytes", "size", MAX_FILE_BYTES)
    state_interval_bytes: int = option("stateIntervalBytes", "size", STATE_INTERVAL_BYTES)
    overwrites: bool = False

    @property
    def is_of_events(self) -> bool:
        return self.table is None and "data" in self.columns

    @property
    def has_gtids(self) -> bool:
        return "_gtid" in self.columns

    def tables(self) -> dict[str, WrittenTable]:
        return {
            name: written_table(name, columns, table_id=number, primary_key=self.primary_key if self.table else ())
            for number, (name, columns) in enumerate(self.declarations.items(), start=1)
        }


NAMES = tuple(option_fields(WriteOptions))


def parse_write_options(
    options: Mapping[str, str], fields: Mapping[str, str], *, overwrites: bool = False
) -> WriteOptions:
    """`fields` are the DataFrame's columns with Spark's names of their types. Raises ConfigurationError: an option is
    unknown, is missing or cannot be read, or the columns do not fit."""
    given = {name.lower(): value for name, value in options.items()}
    expect_known(given, NAMES)
    if not given.get("path"):
        raise ConfigurationError("option path is missing: save(PATH)")
    found = {"creates_tables": "_gtid" not in fields} | read_fields(WriteOptions, given)
    declarations = parse_declarations_option(given.get("schema"))
    table, primary_key = given.get("table") or None, found.get("primary_key", ())
    if table is not None:
        declarations = {table: declarations[table] if table in declarations else _derived(fields, primary_key)}
    found |= {
        "path": str(local_place(local_path(given["path"]), "a log of a DataFrame")),
        "columns": tuple(fields),
        "table": table,
        "declarations": declarations,
        "primary_key": tuple(map(own_name, primary_key)),
    }
    parsed = WriteOptions(overwrites=overwrites, **found)
    _check(parsed, fields)
    return parsed


def _derived(fields: Mapping[str, str], primary_key: tuple[str, ...]) -> dict[str, str]:
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
    try:  # not after tasks are done and merged
        LogLimits(max_file_bytes=options.max_file_bytes, state_interval_bytes=options.state_interval_bytes)
    except ConfigurationError as error:
        raise ConfigurationError(f"options maxFileBytes and stateIntervalBytes: {error}") from None
    options.tables()
