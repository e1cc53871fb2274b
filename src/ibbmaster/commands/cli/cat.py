"""`ibbmaster cat`: a log as text, for people and for programs."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import ibbmaster
from ibbmaster.commands.printing.content import Printer, placed
from ibbmaster.commands.printing.csv_lines import CsvLines
from ibbmaster.commands.printing.debezium_lines import DebeziumLines
from ibbmaster.commands.printing.json_lines import JsonLines
from ibbmaster.commands.printing.output import GroupOutput, opened_output
from ibbmaster.commands.printing.server_script import ServerScript
from ibbmaster.commands.printing.sql_script import SqlScript
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import parse_table_name
from .chosen import chosen_part
from .progress import progress, signalled

WORK_OF_BYTE = 8  # what the reference takes to print one, in bytes read meanwhile


def run(args: argparse.Namespace) -> int:
    if (args.format == "csv") != (args.table is not None):
        raise ConfigurationError("--format csv has the changes of one table: name it with --table, as shop.orders")
    with ibbmaster.open(
        args.directory, schema=_schema_text(args.schema), lower_case_table_names=args.lower_case_table_names
    ) as whole:
        if not whole.files:
            raise StoreError(f"{args.directory}: no binlog files (binlog-000000.ibb and so on)")
        log = chosen_part(whole, args)
        printer = _printer(args, log)
        with (
            opened_output(args.output, grows=args.follow) as target,
            progress(is_wanted=args.output is not None and not args.follow) as bar,
            _following(args.follow) as goes_on,
        ):
            output = GroupOutput(target)

            def wait() -> bool:
                output.flush()
                return goes_on()

            mode = "latest" if args.format == "csv" else "asWritten"
            output.write([printer.begin()])
            begin = _print_fast(log, args, output)
            groups: Iterable[ibbmaster.Group] = ()
            if begin is not None:
                groups = log.groups(schema_mode=mode, asks_statements=True, at_end=wait if args.follow else None)
            advance = _advancing(log, bar.reach)
            for group in groups:
                if begin is not None and group.start < begin:
                    continue
                with placed(group):
                    output.write(printer.group(group))
                advance(group)
                if not goes_on():
                    break
            output.write([printer.end()])
    return 0


@contextlib.contextmanager
def _following(is_wanted: bool) -> Iterator[Callable[[], bool]]:
    """Whether to continue: with --follow SIGINT and SIGTERM end it after the current transaction."""
    has_ended = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_wanted else ()
    with signalled(lambda number, frame: has_ended.set(), *numbers):
        yield lambda: not has_ended.is_set()


def _schema_text(path: Path | None) -> str:
    from ibbmaster.api.opening import declarations_of
    from ibbmaster.errors import ConfigurationError

    if path is None:
        return ""
    try:
        text = path.read_text("utf-8")
        declarations_of(text, f"--schema: {path}")
        return text
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not text in UTF-8"
        raise ConfigurationError(f"--schema: {path}: {problem}") from None


def _print_fast(log: ibbmaster.Log, args: argparse.Namespace, output: GroupOutput) -> LogPosition | None:
    """Print what kernels can; returns where the rest begins, or None. The reference explains damage."""
    from ibbmaster.errors import IbbMasterError
    from ibbmaster.kernel.loading import do_pay, load
    from ibbmaster.position import LOG_START

    part: StagedLog | None = getattr(log, "staged", None)
    is_fast = args.format in ("json", "debezium") and not args.follow and args.on_undecodable == "fail"
    is_fast = is_fast and not (part is not None and part.stages)
    if not is_fast or not do_pay(WORK_OF_BYTE * log.stored_bytes):
        return LOG_START
    try:
        from ibbmaster.commands.printing.fast_lines import FastLines
        from ibbmaster.commands.printing.line_formats import DebeziumFormat, JsonFormat
    except ModuleNotFoundError:  # Arrow is an extra
        return LOG_START
    kernels = load()
    if kernels is None:
        return LOG_START
    form = JsonFormat() if args.format == "json" else DebeziumFormat()
    fast = FastLines(log, kernels, form, None if part is None else part.span)
    try:
        for run in fast.runs():
            output.write(run)
    except IbbMasterError:
        return fast.position
    return None


def _printer(args: argparse.Namespace, log: ibbmaster.Log) -> Printer:
    keeps_bytes = args.on_undecodable == "binary"
    if args.format == "csv":
        return CsvLines(str(parse_table_name(args.table)), keeps_bytes=keeps_bytes)
    if args.format == "debezium":
        return DebeziumLines(log.engine.file_name, keeps_bytes=keeps_bytes)
    if args.format == "json":
        return JsonLines(keeps_bytes=keeps_bytes)
    given = log.stored.server_version, log.row_event_max, args.load_files
    if args.format != "sql":
        return ServerScript(*given)
    script = SqlScript(*given)
    script.keeps_bytes = keeps_bytes
    return script


def _advancing(log: ibbmaster.Log, reach: Callable[[int, int], None]) -> Callable[[ibbmaster.Group], None]:
    files = log.files
    total = sum(file.size for file in files)
    before: dict[int, int] = {}
    size = 0
    for file in files:
        before[file.file_no] = size
        size += file.size
    return lambda group: reach(before.get(group.end.file_no, 0) + group.end.offset, total)
