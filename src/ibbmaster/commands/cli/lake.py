"""`ibbmaster lake`: the tables of whole archives, kept or written as they were."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import ibbmaster
from ibbmaster.extras import needed_for
from ibbmaster.storage.disk.place import is_object_place
from .arguments import expect_log, expect_writable

if TYPE_CHECKING:
    import pyarrow as pa

    from ibbmaster.tables.arrow.read_options import ReadOptions

REWRITTEN = "; all of its rows were written anew"
SHOWN_ROWS = 20


def run_snapshot(args: argparse.Namespace) -> int:
    from ibbmaster.lake.placing import check_free, write_whole

    expect_log(args.directory)
    if args.to is not None:
        check_free(args.to)
        expect_writable(args.to)
    options = options_of(args)

    from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot, domains_left_out

    for domain in domains_left_out(options):
        print(f"ibbmaster: --at {args.at} names no GTID of domain {domain}: nothing of it counts", file=sys.stderr)
    doubts: list[str] = []
    make = arrow_history if args.history else arrow_snapshot
    rows = make(options, key=args.key, on_doubt=doubts.append if args.accept_inexact else None)
    for doubt in doubts:
        print(f"ibbmaster: {doubt}", file=sys.stderr)
    if args.to is not None:
        count = write_whole(rows, args.to)
        found: dict[str, object] = {"table": args.table, "rows": count} | ({"inexact": doubts} if doubts else {})
        print(json.dumps(found) if args.json else f"{args.table}: {count} rows")
    elif args.json:
        for row in each_row(rows):
            print(json.dumps(row, default=as_json))
    else:
        show(rows.column_names, [tuple(row.values()) for row in each_row(rows.slice(0, SHOWN_ROWS))])
    return 0


def options_of(args: argparse.Namespace) -> ReadOptions:
    with needed_for("lake snapshot"):
        import pyarrow  # noqa: F401  # wanted by what is imported later

    from ibbmaster.kernel.loading import do_pay
    from ibbmaster.tables.arrow.options import parse_options, schema_options

    with ibbmaster.open(args.directory) as log:
        pays = do_pay(log.stored_bytes)
    given = {"path": args.directory, "table": args.table, "zeroDates": args.zero_dates}
    given |= schema_options(args.schema or None, args.lower_case_table_names) | (
        {"endingGtid": args.at} if args.at else {}
    )
    base = None if args.base is None else str(args.base)
    return replace(parse_options(given), uses_kernels=pays, base=base)


def each_row(table: pa.Table) -> Iterator[dict[str, object]]:
    """Moments are in UTC, without a zone."""
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: without_zone(value) for name, value in row.items()}


def without_zone(value: object) -> object:
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value


def run_maintain(args: argparse.Namespace) -> int:
    """Bring a lake's tables to a log's end; 1 if one is not exact."""
    from ibbmaster.lake.maintain.target import LIBRARIES, directory_of, scheme_of
    from ibbmaster.lake.placing import check_free

    place = directory_of(args.to, args.catalog)
    expect_log(args.directory)
    if not is_object_place(place):
        check_free(place)
        expect_writable(place)
    importlib.import_module(LIBRARIES[scheme_of(args.to)])
    from ibbmaster.lake.maintain.job import maintain

    found = maintain(
        args.directory,
        args.to,
        kind=args.kind,
        only=args.only,
        leaves_out=args.leaves_out,
        schema=args.schema,
        name_case=args.lower_case_table_names,
        zero_dates=args.zero_dates,
        catalog=args.catalog,
        base=args.base,
    )
    if args.json:
        tables = {name: state.as_json() | {"verdict": state.verdict} for name, state in found.tables.items()}
        lists = {"written": found.written, "rewritten": found.rewritten, "removed": found.removed}
        print(json.dumps({"from": found.start, "to": found.end, "tables": tables, **lists}))
    else:
        for name, state in found.tables.items():
            print(f"{name}: {state.verdict}{REWRITTEN if name in found.rewritten else ''}")
        for name in found.removed:
            print(f"removed {name}, which a killed run has left")
    are_exact = all(state.is_exact or state.is_gone for state in found.tables.values())
    if not are_exact and args.kind != "changes":
        sys.stdout.flush()  # the tables come first, where both go to one place
        print(
            "ibbmaster: a table that is not exact begins anew with a dump of a later position: --base", file=sys.stderr
        )
    return 0 if are_exact else 1


def as_json(value: object) -> object:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    return str(value)


def show(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(name) for name in names], *([text_of(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        sys.stdout.write(
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        )


def text_of(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    text = str(as_json(value)) if isinstance(value, bytes | bytearray) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


JOBS = {"snapshot": run_snapshot, "maintain": run_maintain}
