"""`ibbmaster convert`: a log as files of the other kind, or a part of it as files of the same kind."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibbmaster
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.kernel.loading import load_for_work
from ibbmaster.logs.classic.archives import find_files
from ibbmaster.logs.classic.binlog import ClassicReader
from ibbmaster.logs.classic.convert import ImportReport, import_groups
from ibbmaster.logs.classic.exporting import FILE_BYTES_MIN, ConversionReport, LogRead, export_traditional
from ibbmaster.logs.classic.head import without_unbegun
from ibbmaster.logs.classic.packing import holds_traditional
from ibbmaster.logs.stages.options import given_stages
from ibbmaster.replication.dump.profile import PROFILES, Profile
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.storage.disk.local import RealDisk, left_unfinished
from ibbmaster.storage.disk.place import local_place
from ibbmaster.storage.disk.uploading import made_place
from ibbmaster.storage.ibb.file_name import parse_file_name
from .arguments import expect_log, expect_readable, expect_writable, report
from .chosen import chosen_part, chosen_stages
from .progress import progress

IBB, TRADITIONAL = "ibb", "traditional"
STEM = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}", re.ASCII)


def run(args: argparse.Namespace) -> int:
    sources: list[Path] = args.source
    is_traditional = holds_traditional(sources[0])
    to = args.to or (IBB if is_traditional else TRADITIONAL)
    stages = given_stages(chosen_stages(args))
    profile = _profile(args)
    if to == IBB and not stages and (is_traditional or args.append or len(sources) > 1):
        return _import(args)
    if args.append:
        raise ConfigurationError("--append goes on with .ibb files made of whole logs")
    if len(sources) > 1:
        raise ConfigurationError("several SOURCEs become .ibb files, and whole: their directory or index is one log")
    made = _export(args, to, stages, profile)
    position = str(made.gtid_state.position())
    facts = {
        "format": to,
        "server_version": profile.server_version if to == TRADITIONAL else None,
        "files": list(made.files),
        "groups": made.group_count,
        "event_bytes": made.event_bytes,
        "server_restarts": made.restart_count,
        "gtid_position": position,
        "gtid_state": str(made.gtid_state),
    }
    report(args, facts, _written(made, made.files, args.target), f"GTID position {position}")
    return 0


def _profile(args: argparse.Namespace) -> Profile:
    if args.max_file_size < FILE_BYTES_MIN:
        raise ConfigurationError(f"files of {args.max_file_size} bytes: expected {FILE_BYTES_MIN} or more")
    if not STEM.fullmatch(args.name):
        raise ConfigurationError(f"{args.name!r} cannot be the name of binlog files: expected one like 'binlog'")
    profile = PROFILES[args.profile]
    if args.server_version is not None:
        profile = profile.with_version(args.server_version)
    return replace(profile, event_checksum=ChecksumAlgorithm[args.checksum.upper()])


def _export(args: argparse.Namespace, to: str, stages: dict[str, Any], profile: Profile) -> ConversionReport:
    [source] = args.source
    expect_log(source)
    expect_writable(args.target)
    for path in left_unfinished(args.target):
        print(f"note: {path} is what a run left that was killed, unless it is under way: remove it", file=sys.stderr)
    with (
        ibbmaster.open(source, lower_case_table_names=args.lower_case_table_names) as whole,
        progress(is_wanted=not args.json) as bar,
    ):
        log = chosen_part(whole, args)
        load_for_work(whole.stored_bytes)
        with made_place(args.target) as staging, closing(RealDisk(staging)) as disk:
            if to == TRADITIONAL:
                found = export_traditional(
                    log.engine, disk, profile, stem=args.name, max_file_bytes=args.max_file_size, progress=bar.reach
                )
            else:
                made = import_groups(LogRead(log.engine), disk, progress=bar.reach, **_sizes(args))
                found = ConversionReport(
                    files=made.ibb_files,
                    group_count=made.group_count,
                    event_bytes=made.event_bytes,
                    restart_count=0,
                    gtid_state=made.gtid_state,
                )
            if stages and not found.group_count:
                has = f"which has groups up to [{whole.position}]"
                raise ConfigurationError(f"no event group of {source}, {has}, is in the part that was chosen")
    return found


def _import(args: argparse.Namespace) -> int:
    """Write whole logs to the target itself: `--append` continues what a killed run leaves."""
    directory: Path = args.target
    local_place(directory, "an import")
    if directory.exists() and not directory.is_dir():
        raise StoreError(f"{directory} is not a directory")
    if not args.append and directory.exists() and any(directory.iterdir()):
        raise StoreError(f"{directory} is not empty; --append goes on with the log in it")
    with ExitStack() as stack:
        source = _source(args.source, stack)
        expect_writable(directory)
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        disk = RealDisk(directory)
        try:
            load_for_work(source.size_bytes)
            with progress(is_wanted=not args.json) as bar:
                made = import_groups(source, disk, append=args.append, progress=bar.reach, **_sizes(args))
        finally:
            disk.close()
            if is_new and not any(directory.iterdir()):
                directory.rmdir()
    report(args, _as_json(made), *_lines(made, directory))
    return 0


def _sizes(args: argparse.Namespace) -> dict[str, Any]:
    return {"max_file_bytes": args.max_file_size, "state_interval_bytes": args.state_interval}


def _source(paths: list[Path], stack: ExitStack) -> ClassicReader | LogRead:
    [path, *others] = paths
    if not others and path.is_dir() and any(parse_file_name(one.name) is not None for one in path.iterdir()):
        return LogRead(stack.enter_context(ibbmaster.open(path)).engine)
    files = without_unbegun(find_files(paths))
    expect_readable(file.path for file in files)
    return ClassicReader(files)


def _written(made: ImportReport | ConversionReport, files: Sequence[str], directory: Path, origin: str = "") -> str:
    into = f"{directory / files[0]}{'' if len(files) == 1 else f' to {files[-1]}'}"
    return f"{made.group_count} event groups with {made.event_bytes} bytes{origin} -> {into}"


def _lines(made: ImportReport, directory: Path) -> Iterator[str]:
    files = "1 file" if len(made.source_files) == 1 else f"{len(made.source_files)} files"
    yield _written(made, made.ibb_files, directory, f" from {files}")
    if made.skipped_count:
        yield f"{made.skipped_count} groups were in the log already"
    yield f"GTID position {made.gtid_state.position()}"
    for notice in made.notices:
        yield f"note: {notice}"


def _as_json(made: ImportReport) -> dict[str, object]:
    return {
        "source_files": list(made.source_files),
        "files": list(made.ibb_files),
        "groups": made.group_count,
        "skipped_groups": made.skipped_count,
        "event_bytes": made.event_bytes,
        "read_bytes": made.read_bytes,
        "out_of_order_groups": made.out_of_order_count,
        "server_restarts": made.restart_count,
        "gtid_position": str(made.gtid_state.position()),
        "gtid_state": str(made.gtid_state),
        "notes": list(made.notices),
    }
