"""`ibbmaster convert`: a log as files of the other kind, or a part of it as files of the same kind."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import closing
from dataclasses import replace
from typing import Any

import ibbmaster
from ibbmaster.classic.convert import import_groups
from ibbmaster.classic.exporting import FILE_BYTES_MIN, ConversionReport, LogRead, export_traditional
from ibbmaster.classic.packing import holds_traditional
from ibbmaster.cli.arguments import chosen_part, chosen_stages, expect_log, expect_writable, report
from ibbmaster.cli.import_ import import_files, written
from ibbmaster.cli.progress import progress
from ibbmaster.disk.local import RealDisk, left_unfinished
from ibbmaster.disk.uploading import made_place
from ibbmaster.dump.profile import PROFILES, Profile
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.format_description import ChecksumAlgorithm
from ibbmaster.kernel.loading import load_for_work
from ibbmaster.stages.options import given_stages

IBB, TRADITIONAL = "ibb", "traditional"
STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)


def run(args: argparse.Namespace) -> int:
    """Convert, and say what was done."""
    is_traditional = holds_traditional(args.source)
    to = args.to or (IBB if is_traditional else TRADITIONAL)
    stages = given_stages(chosen_stages(args))
    profile = _profile(args)
    if to == IBB and not stages and (is_traditional or args.append):
        return import_files([args.source], args.target, args)
    if args.append:
        raise ConfigurationError("--append goes on with .ibb files made of whole logs")
    made = _export(args, to, stages, profile)
    position = str(made.gtid_state.position())
    facts = {
        "format": to,
        "server_version": profile.server_version if to == TRADITIONAL else None,
        "files": list(made.files),
        "event_groups": made.group_count,
        "event_bytes": made.event_bytes,
        "server_restarts": made.restart_count,
        "gtid_position": position,
        "gtid_state": str(made.gtid_state),
    }
    report(args, facts, written(made, made.files, args.target), f"GTID position {position}")
    return 0


def _profile(args: argparse.Namespace) -> Profile:
    """How traditional files are written. Raises ConfigurationError: an option of theirs cannot be used."""
    if args.max_file_size < FILE_BYTES_MIN:
        raise ConfigurationError(f"files of {args.max_file_size} bytes: expected {FILE_BYTES_MIN} or more")
    if not STEM.fullmatch(args.name):
        raise ConfigurationError(f"{args.name!r} cannot be the name of binlog files: expected one like 'binlog'")
    profile = PROFILES[args.profile]
    if args.server_version is not None:
        profile = profile.with_version(args.server_version)
    return replace(profile, event_checksum=ChecksumAlgorithm[args.checksum.upper()])


def _export(args: argparse.Namespace, to: str, stages: dict[str, Any], profile: Profile) -> ConversionReport:
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
            load_for_work(whole.stored_bytes)
        with made_place(args.target) as staging, closing(RealDisk(staging)) as disk:
            if to == TRADITIONAL:
                found = export_traditional(
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
                found = ConversionReport(
                    files=made.ibb_files,
                    group_count=made.group_count,
                    event_bytes=made.event_bytes,
                    restart_count=0,
                    gtid_state=made.gtid_state,
                )
            if stages and not found.group_count:
                has = f"which has groups up to [{whole.position}]"
                raise ConfigurationError(f"no event group of {args.source}, {has}, is in the part that was chosen")
    return found
