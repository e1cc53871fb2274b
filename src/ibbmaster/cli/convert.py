"""`ibbmaster convert`: a log as files of the other kind, or a part of it as files of the same kind."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibbmaster.cli.arguments import (
    add_name_case,
    add_stages,
    add_state_interval,
    chosen_part,
    chosen_stages,
    expect_log,
    expect_writable,
    size,
)
from ibbmaster.disk.place import place
from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from ibbmaster.classic.exporting import ConversionReport
    from ibbmaster.dump.profile import Profile

IBB, TRADITIONAL = "ibb", "traditional"
PROFILES = ("classic-10.11", "classic-11.8")
STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `convert` to the command line."""
    parser = subparsers.add_parser(
        "convert",
        help="make traditional files of .ibb files, or the other way round",
        description="Make traditional binlog files of a log of .ibb files, or .ibb files of traditional ones. "
        "Traditional files have an index and the state of a server that was stopped in order: mariadb-binlog reads "
        "them, and a server starts on them as on its own.",
    )
    parser.add_argument(
        "source",
        type=place,
        metavar="SOURCE",
        help="directory with binlog-NNNNNN.ibb files; or traditional files: their directory, index, or one of them",
    )
    parser.add_argument(
        "target",
        type=place,
        metavar="TARGET",
        help="directory to write, made if missing, else empty; or URL of an object store",
    )
    parser.add_argument(
        "--to", choices=(IBB, TRADITIONAL), help="which files to write (default: those that SOURCE does not have)"
    )
    parser.add_argument(
        "--max-file-size",
        type=size,
        default="1G",
        metavar="SIZE",
        help="size of each .ibb file; a traditional file ends with the transaction that reaches it "
        "(default: %(default)s)",
    )
    of_traditional = parser.add_argument_group("traditional files")
    of_traditional.add_argument(
        "--profile",
        choices=PROFILES,
        default="classic-11.8",
        help="which server's files to write (default: %(default)s)",
    )
    of_traditional.add_argument("--server-version", metavar="VERSION", help="as 11.8.6-MariaDB-log, in their heads")
    of_traditional.add_argument(
        "--checksum", choices=("crc32", "none"), default="crc32", help="of each event (default: %(default)s)"
    )
    of_traditional.add_argument(
        "--name", default="binlog", metavar="NAME", help="of the files, before .000001 (default: %(default)s)"
    )
    of_ibb = parser.add_argument_group(".ibb files")
    of_ibb.add_argument(
        "--append", action="store_true", help="go on with the log in TARGET, as `ibbmaster import` does"
    )
    add_state_interval(of_ibb)
    add_stages(parser)
    add_name_case(parser)
    parser.add_argument("--json", action="store_true", help="report as one line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert, and say what was done."""
    from ibbmaster.classic.kind import holds_traditional
    from ibbmaster.cli.import_ import import_files
    from ibbmaster.stages.options import given_stages

    is_traditional = holds_traditional(args.source)
    to = args.to or (IBB if is_traditional else TRADITIONAL)
    stages = given_stages(chosen_stages(args))
    profile = _profile(args)
    if to == IBB and not stages and (is_traditional or args.append):
        return import_files([args.source], args.target, args)
    if args.append:
        raise ConfigurationError("--append goes on with .ibb files made of whole logs")
    report = _export(args, to, stages, profile)
    if args.json:
        print(json.dumps(_as_json(report, to, profile)))
    else:
        print("\n".join(_lines(report, args.target)))
    return 0


def _profile(args: argparse.Namespace) -> Profile:
    """How traditional files are written.

    Raises:
        ConfigurationError: an option of theirs cannot be used.
    """
    from ibbmaster.classic.exporting import FILE_BYTES_MIN
    from ibbmaster.dump.profile import PROFILES
    from ibbmaster.event.format_description import ChecksumAlgorithm

    if args.max_file_size < FILE_BYTES_MIN:
        raise ConfigurationError(f"files of {args.max_file_size} bytes: expected {FILE_BYTES_MIN} or more")
    if not STEM.fullmatch(args.name):
        raise ConfigurationError(f"{args.name!r} cannot be the name of binlog files: expected one like 'binlog'")
    profile = PROFILES[args.profile]
    if args.server_version is not None:
        profile = profile.with_version(args.server_version)
    return replace(profile, event_checksum=ChecksumAlgorithm[args.checksum.upper()])


def _export(args: argparse.Namespace, to: str, stages: dict[str, Any], profile: Profile) -> ConversionReport:
    import ibbmaster
    from ibbmaster.classic.convert import import_groups
    from ibbmaster.classic.exporting import ConversionReport, LogRead, export_traditional
    from ibbmaster.cli.progress import load_kernels, progress
    from ibbmaster.disk.local import RealDisk, left_unfinished
    from ibbmaster.disk.uploading import made_place
    from ibbmaster.kernel.parts import KernelSet

    expect_log(args.source)
    expect_writable(args.target)
    for path in left_unfinished(args.target):
        print(f"note: {path} is what a run left that was killed, unless it is under way: remove it", file=sys.stderr)
    with (
        ibbmaster.open(args.source, lower_case_table_names=args.lower_case_table_names) as whole,
        progress(is_wanted=not args.json) as bar,
    ):
        log = chosen_part(whole, args)
        if to == TRADITIONAL:
            load_kernels(KernelSet.EXPORT, whole.stored_bytes)
        with made_place(args.target) as staging, closing(RealDisk(staging)) as disk:
            if to == TRADITIONAL:
                report = export_traditional(
                    log.engine, disk, profile, stem=args.name, max_file_bytes=args.max_file_size, progress=bar.reach
                )
            else:
                made = import_groups(
                    LogRead(log.engine),
                    disk,
                    max_file_bytes=args.max_file_size,
                    state_interval_bytes=args.state_interval,
                    progress=bar.reach,
                )
                report = ConversionReport(
                    files=made.ibb_files,
                    group_count=made.group_count,
                    event_bytes=made.event_bytes,
                    restart_count=0,
                    gtid_state=made.gtid_state,
                )
            if stages and not report.group_count:
                has = f"which has groups up to [{whole.position}]"
                raise ConfigurationError(f"no event group of {args.source}, {has}, is in the part that was chosen")
    return report


def _lines(report: ConversionReport, directory: Path) -> Iterator[str]:
    first, last = report.files[0], report.files[-1]
    yield (
        f"{report.group_count} event groups with {report.event_bytes} bytes "
        f"-> {directory / first}{'' if first == last else f' to {last}'}"
    )
    yield f"GTID position {report.gtid_state.position()}"


def _as_json(report: ConversionReport, to: str, profile: Profile) -> dict[str, object]:
    return {
        "format": to,
        "server_version": profile.server_version if to == TRADITIONAL else None,
        "files": list(report.files),
        "event_groups": report.group_count,
        "event_bytes": report.event_bytes,
        "server_restarts": report.restart_count,
        "gtid_position": str(report.gtid_state.position()),
        "gtid_state": str(report.gtid_state),
    }
