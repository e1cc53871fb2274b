"""Which log a path is: what `ibbmaster.open` and `ibbmaster.create` give."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Unpack, overload

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.large_rows import parse_row_event_max
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.span import span_of_file
from ibbmaster.replication.event.rows.declared import Declaration
from ibbmaster.schema.declarations import parse_declarations
from ibbmaster.schema.name_case import NameCase, parse_name_case
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.disk.place import local_place
from .log import FileView, Log
from .log_files import PathLike, file_no_of, files_at, log_path
from .stores import WritingOptions, existing_store, new_store
from .writing import WritableLog


@overload
def open(
    path: PathLike,
    *,
    schema: str = "",
    lower_case_table_names: int | None = None,
    max_row_event_bytes: int | str | None = None,
    writable: Literal[False] = False,
) -> Log: ...
@overload
def open(
    path: PathLike,
    *,
    schema: str = "",
    lower_case_table_names: int | None = None,
    max_row_event_bytes: int | str | None = None,
    writable: Literal[True],
    has_background: bool = True,
    **options: Unpack[WritingOptions],
) -> WritableLog: ...
def open(
    path: PathLike,
    *,
    schema: str = "",
    lower_case_table_names: int | None = None,
    max_row_event_bytes: int | str | None = None,
    writable: bool = False,
    has_background: bool = True,
    **options: Unpack[WritingOptions],
) -> Log:
    """The log in a directory of `.ibb` or traditional files, or in an archive of wal-g or mariadb-operator; or a
    traditional file, an index file, one `.ibb` file as a part of its log, or a URL as s3://bucket/prefix with the extra
    `objects`.

    Reading changes nothing, goes on beside any writer, and includes what a killed writer left in its redo log; an empty
    directory is an empty log. `writable=True` recovers and continues the log of a directory; `create` makes a new one,
    and explains the `options`.

    `schema` has CREATE TABLE statements for tables whose column names the log lacks. `lower_case_table_names` is 0, 1
    or 2, as the log's server has it; by default the log tells. `max_row_event_bytes`, also as text like "512M", limits
    a row event that is read as rows, put together of its fragments and unpacked (4 GiB, as for a server); a temporary
    file holds what exceeds 64 MiB.

    Raises:
        BusyError: it is to be written, and another process writes there.
        ConfigurationError: an option cannot be used.
        DamageError, FormatError: it is to be written, and is not as a crash leaves it.
        StoreError: there is no such directory, or nothing there that can be written.
    """
    where = log_path(path)
    declared = declarations_of(schema)
    case = parse_name_case("lower_case_table_names", lower_case_table_names)
    row_event_max = parse_row_event_max(max_row_event_bytes)
    if not writable:
        if options:
            raise TypeError(f"{', '.join(options)}: for a log that is written, with writable=True")
        return _open_to_read(where, declared, case, row_event_max)
    store = existing_store(where, options)
    return WritableLog(
        where, store, schema=declared, name_case=case, row_event_max=row_event_max, has_background=has_background
    )


def create(
    path: PathLike,
    *,
    state: GtidState | str = "",
    exist_ok: bool = False,
    schema: str = "",
    has_background: bool = True,
    **options: Unpack[WritingOptions],
) -> WritableLog:
    """A new log of `.ibb` files, to be written; its directory is made if it is missing.

    `state` was logged before the first group. `exist_ok` continues an existing log. `schema` is that of `open`. Without
    `has_background` no thread writes pages, makes files and purges beside those that append. Options, sizes also as
    text like "64M":

    - `durability`: a group is durable when `append` returns with "sync" (the default), handed to the operating system
      with "write", and durable within a second with both "write" and "later".
    - `max_file_bytes` (1 GiB), `state_interval_bytes` (2 MiB): of each file, and between GTID states.
    - `expire_s`, `max_total_bytes`, `replicas_needed_for_purge` (1): remove files last written longer ago, or while all
      together are larger, if that many replicas are connected.
    - `gtid_strict` (True): take a group only if its GTID is newer than what its domain has.
    - `full_disk_retry_s` (0.5): seconds between attempts while the disk is full; 0: a full disk is an error at once.
    - `is_sparse` (True): files take no room before they are filled.
    - `redo_bytes`, `oob_piece_bytes`, `spill_bytes`: as `StoreOptions` has them.

    Raises:
        BusyError: another process writes there.
        ConfigurationError: an option cannot be used.
        StoreError: there is a log already, or the directory cannot be written.
    """
    where = local_place(log_path(path), "a log that is written")
    declared = declarations_of(schema)
    initial = GtidState.parse(state) if isinstance(state, str) else state
    store = new_store(where, options, initial, exist_ok=exist_ok)
    return WritableLog(where, store, schema=declared, has_background=has_background)


def _open_to_read(
    path: Path, schema: Mapping[str, Declaration], case: NameCase | None, row_event_max: int | None
) -> Log:
    file_no = file_no_of(path)
    if file_no is None:
        stored = files_at(path)
        return Log(path, stored.engine, stored=stored, schema=schema, name_case=case, row_event_max=row_event_max)
    log = _open_to_read(path.parent, schema, case, row_event_max)
    try:
        return FileView(log, StagedLog(log.engine, span=span_of_file(log.engine, file_no)), path.name)
    except BaseException:
        log.close()
        raise


def declarations_of(schema: str, where: str = "schema") -> dict[str, Declaration]:
    """`where` names `schema` in errors. Raises ConfigurationError: it is not CREATE TABLE statements."""
    try:
        found: dict[str, Declaration] = {
            str(parse_table_name(table)): columns for table, columns in parse_declarations(schema)
        }
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if schema.strip() and not found:
        raise ConfigurationError(
            f"{where} has no CREATE TABLE statement with columns, expected CREATE TABLE database.table (…)"
        )
    return found
