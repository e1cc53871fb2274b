"""`ibbmaster lake`: jobs over whole archives, on all cores of this machine or on a Spark cluster."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ibbmaster.cli.arguments import add_name_case, expect_log, expect_writable
from ibbmaster.cli.lake_engine import arrow_options, is_for_arrow, pair_of, session_of
from ibbmaster.cli.lake_rows import ArrowRows, Result, SparkRows, TableRows
from ibbmaster.disk.place import is_object_place
from ibbmaster.disk.place import place as named_place

EXAMPLES = """examples:
  ibbmaster lake export /srv/ibb --to /srv/parquet
  ibbmaster lake snapshot /srv/ibb shop.orders --to /srv/orders
  ibbmaster lake snapshot /srv/ibb shop.orders --history --at 0-1-1000 --to /srv/orders-history
  ibbmaster lake maintain /srv/ibb --to delta:///srv/tables
  ibbmaster lake maintain /srv/ibb --to iceberg:///srv/tables --as history
  ibbmaster lake find /srv/ibb shop.orders id=7

maintain never uses Spark; it needs `pip install 'ibbmaster[delta]'` or `'ibbmaster[iceberg]'`. find never does, either,
nor does snapshot for logs of up to 512 MB (--engine arrow): both need `'ibbmaster[arrow]'`. export, and snapshots of
larger logs, run on Spark: Java 17 and `'ibbmaster[spark]'`. Its first seconds start it; `--conf spark.log.level=INFO`
shows its log.
"""
REWRITTEN = "; all of its rows were written anew"  # after the verdict on a table


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `lake` to the command line."""
    parser = subparsers.add_parser(
        "lake",
        help="export, maintain, fold and search whole archives",
        description="Jobs over whole archives: in this process, or with Spark on all cores or a cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    jobs = parser.add_subparsers(title="jobs", metavar="JOB", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--master",
        metavar="URL",
        help="Spark cluster, or a server of Spark Connect as sc://HOST:PORT (default: local[*], all cores of "
        "this machine)",
    )
    common.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="setting of Spark; may be given several times"
    )
    common.add_argument(
        "--archives",
        metavar="WHEEL",
        type=Path,
        help="wheel of ibbmaster that the workers of a cluster unpack, if their Python lacks it",
    )
    common.add_argument("--json", action="store_true", help="print one JSON object")
    declared = argparse.ArgumentParser(add_help=False)
    declared.add_argument(
        "--schema",
        metavar="FILE",
        help="CREATE TABLE statements, or JSON, of tables whose columns the log does not name",
    )
    add_name_case(declared)
    declared.add_argument(
        "--zero-dates",
        choices=("null", "text"),
        default="null",
        help="what dates like 0000-00-00 become: null, or all dates are text (default: %(default)s)",
    )
    based = argparse.ArgumentParser(add_help=False)
    based.add_argument(
        "--base",
        metavar="DUMP",
        type=Path,
        help="what `mariadb-dump --master-data --gtid` wrote: the rows of tables at a position from "
        "which the log goes on, where it lacks their beginning, or what a statement did",
    )
    local = argparse.ArgumentParser(add_help=False)
    local.add_argument("directory", metavar="LOG", help="directory of .ibb or traditional files")
    local.add_argument("--json", action="store_true", help="print one JSON object")

    def job(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        one = jobs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", parents=[common, *parents])
        one.add_argument("directory", metavar="DIR", help="directory with binlog-NNNNNN.ibb files")
        one.set_defaults(run=run)
        return one

    one = job(
        "export",
        run_export,
        "write the changes of rows as Parquet or Delta, a table each, and a table of all groups",
        declared,
    )
    one.add_argument(
        "--to", required=True, metavar="DIR", help="directory, or URL of an object store; a later run adds what is new"
    )
    one.add_argument("--table", action="append", default=[], metavar="DB.TABLE", help="only this one; may be repeated")
    one.add_argument(
        "--format", choices=("parquet", "delta"), default="parquet", help="kind of the tables (default: %(default)s)"
    )
    one.add_argument(
        "--keep-going", action="store_true", help="pass over what is damaged, and list it in the table _faults"
    )
    one = job("snapshot", run_snapshot, "write a table as the changes of the log leave it", declared, based)
    one.add_argument(
        "--engine",
        choices=("arrow", "spark"),
        help="read in this process, within seconds and its memory, or with Spark (default: arrow for a log of up to "
        "512 MB, unless --master or --conf is given)",
    )
    one.add_argument("table", metavar="DB.TABLE")
    what = "Parquet directory to write, or URL of an object store (default: print some rows)"
    one.add_argument("--to", type=named_place, metavar="DIR", help=what)
    one.add_argument(
        "--key", action="append", default=[], metavar="COLUMN", help="of the key (default: the primary key)"
    )
    one.add_argument("--history", action="store_true", help="every version of each row, and when it held (SCD type 2)")
    one.add_argument(
        "--accept-inexact",
        action="store_true",
        help="write a table also if rows changed in ways that the log does not tell, and list these",
    )
    one.add_argument("--at", metavar="GTIDS", help="up to this position (default: the end of the log)")
    one = jobs.add_parser(
        "maintain",
        help="keep tables of a log as Delta or Iceberg tables, and say of each whether it is exact",
        description="Bring tables of a lake to the end of a log, without Spark; a later run brings what is new. "
        "Ends with 1 if a table is not exact.",
        parents=[local, declared, based],
    )
    one.add_argument(
        "--to",
        required=True,
        metavar="KIND://DIR",
        help="delta://DIR or iceberg://DIR: directory with a Delta or an Iceberg table for each table",
    )
    one.add_argument(
        "--catalog",
        metavar="NAME",
        help="catalog of PyIceberg's configuration that gets the tables of iceberg://DIR (default: one in DIR)",
    )
    one.add_argument(
        "--as",
        choices=("current", "changes", "history"),
        default="current",
        dest="kind",
        help="what the tables have: their rows now, every change, or each version of a row (default: %(default)s)",
    )
    one.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="only these tables, as 'shop.*'; may be repeated"
    )
    one.add_argument(
        "--except",
        action="append",
        default=[],
        dest="leaves_out",
        metavar="PATTERN",
        help="all but these tables; may be repeated",
    )
    one.set_defaults(run=run_maintain)
    one = jobs.add_parser(
        "find",
        help="list the changes of the rows that have some values",
        description="List the changes of the rows that have some values, without Spark; ends with 1 if there are none.",
        parents=[local, declared],
    )
    one.set_defaults(run=run_find)
    one.add_argument("table", metavar="DB.TABLE")
    one.add_argument("values", nargs="+", metavar="COLUMN=VALUE")


def run_export(args: argparse.Namespace) -> int:
    """Export what is new."""
    from ibbmaster.lake.exporting import export
    from ibbmaster.lake.placing import check_free

    place = named_place(args.to)
    check_free(place)
    if not is_object_place(place):
        expect_writable(place)
    if args.format == "delta":
        importlib.import_module("deltalake")
    with session_of(args, "export") as session:
        found = export(
            session,
            args.directory,
            args.to,
            tables=args.table,
            schema=args.schema,
            name_case=args.lower_case_table_names,
            zero_dates=args.zero_dates,
            keeps_going=args.keep_going,
            as_delta=args.format == "delta",
        )
    if args.json:
        print(json.dumps(found))
    else:
        rows: Mapping[str, int] = found["rows"]  # type: ignore[assignment]
        for name, count in rows.items():
            print(f"{name}: {count} rows")
        inexact: Mapping[str, str] = found.get("inexact", {})  # type: ignore[assignment]
        for name, doubt in inexact.items():
            print(f"ibbmaster: {name}: {doubt}", file=sys.stderr)
        print(f"{found['groups']} groups, up to [{found['to']}]")
        if args.keep_going:
            print(f"{found['faults']} faults, listed in _faults")
    return 0


def run_snapshot(args: argparse.Namespace) -> int:
    """Write a table, or print some of it."""
    from ibbmaster.lake.placing import check_free
    from ibbmaster.lake.snapshots import domains_left_out, snapshot

    if args.to is not None:
        check_free(args.to)
        expect_writable(args.to)
    for domain in domains_left_out(args.directory, args.at) if args.at else ():
        print(f"ibbmaster: --at {args.at} names no GTID of domain {domain}: nothing of it counts", file=sys.stderr)
    doubts: list[str] = []
    on_doubt = doubts.append if args.accept_inexact else None
    if is_for_arrow(args):
        options = arrow_options(args, table=args.table, **({"endingGtid": args.at} if args.at else {}))
        options = replace(options, base=None if args.base is None else str(args.base))
        from ibbmaster.lake.arrow_snapshots import arrow_history, arrow_snapshot

        make = arrow_history if args.history else arrow_snapshot
        finish_snapshot(args, ArrowRows(make(options, key=args.key, on_doubt=on_doubt)), doubts)
    else:
        with session_of(args, "snapshot") as session:
            frame = snapshot(
                session,
                args.directory,
                args.table,
                key=args.key,
                with_history=args.history,
                at=args.at,
                schema=args.schema,
                name_case=args.lower_case_table_names,
                zero_dates=args.zero_dates,
                on_doubt=on_doubt,
            )
            finish_snapshot(args, SparkRows(frame), doubts)
    if args.chosen is not None:
        sys.stdout.flush()  # what it says of comes first, where both go to one place
        print(f"ibbmaster: {args.chosen}", file=sys.stderr)
    return 0


def finish_snapshot(args: argparse.Namespace, rows: TableRows, doubts: Sequence[str]) -> None:
    """Write a table, or show it, with what is in doubt of it."""
    for doubt in doubts:
        print(f"ibbmaster: {doubt}", file=sys.stderr)
    if args.to is not None:
        count = rows.write(args.to)
        found: Result = {"table": args.table, "rows": count} | ({"inexact": doubts} if doubts else {})
        print(json.dumps(found) if args.json else f"{args.table}: {count} rows")
    elif args.json:
        for row in rows:
            print(json.dumps(row, default=as_json))
    else:
        show(rows.names, rows.some())


def run_maintain(args: argparse.Namespace) -> int:
    """Bring the tables of a lake to the end of a log; 1 if one of them is not exact."""
    from ibbmaster.lake.maintain.job import LIBRARIES, directory_of, maintain, scheme_of
    from ibbmaster.lake.placing import check_free

    place = directory_of(args.to, args.catalog)
    expect_log(args.directory)
    if not is_object_place(place):
        check_free(place)
        expect_writable(place)
    importlib.import_module(LIBRARIES[scheme_of(args.to)])
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
        sys.stdout.flush()  # what it speaks of comes first, where both go to one place
        print(
            "ibbmaster: a table that is not exact begins anew with a dump of a later position: --base", file=sys.stderr
        )
    return 0 if are_exact else 1


def run_find(args: argparse.Namespace) -> int:
    """List changes; 1 if there are none, as grep."""
    from ibbmaster.lake.finding import COLUMNS, find_in_log, own_columns

    expect_log(args.directory)
    values = dict(pair_of(text, "COLUMN=VALUE") for text in args.values)
    found = ArrowRows(find_in_log(arrow_options(args, table=args.table), values))
    rows = list(found)
    if args.json:
        print(json.dumps(rows, default=as_json))
    else:
        shown = [*COLUMNS, *own_columns(found.names)]
        show(shown, [tuple(row[name] for name in shown) for row in rows])
    return 0 if rows else 1


def as_json(value: object) -> object:
    """What JSON has no word for."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    return str(value)


def show(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    cells = [[str(name) for name in names], *([text_of(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        sys.stdout.write(
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        )


def text_of(value: object) -> str:
    """A value in a table for people."""
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    text = str(as_json(value)) if isinstance(value, bytes | bytearray) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
