"""`ibbmaster import`: add binlog files to a directory of `.ibb` files, or begin one with them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.convert import ImportReport, import_groups
from ibbmaster.classic.exporting import ConversionReport, LogRead
from ibbmaster.cli.arguments import expect_readable, expect_writable, report
from ibbmaster.cli.progress import progress
from ibbmaster.disk.local import RealDisk
from ibbmaster.disk.place import local_place
from ibbmaster.errors import StoreError
from ibbmaster.kernel.loading import load_for_work


def run(args: argparse.Namespace) -> int:
    """Import, and say what was done."""
    return import_files(args.classic, args.to, args)


def import_files(paths: list[Path], directory: Path, args: argparse.Namespace) -> int:
    """Make `.ibb` files of traditional ones, and say what was done; `args` are the options of the command. Raises
    IbbMasterError: that cannot be done, as `import_groups` says it."""
    local_place(directory, "an import")
    if directory.exists() and not directory.is_dir():
        raise StoreError(f"{directory} is not a directory")
    if not args.append and directory.exists() and any(directory.iterdir()):
        raise StoreError(f"{directory} is not empty; --append goes on with the log in it")
    with ExitStack() as stack:
        source = _source(paths, stack)
        expect_writable(directory)
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        disk = RealDisk(directory)
        try:
            load_for_work(source.size_bytes)
            with progress(is_wanted=not args.json) as bar:
                made = import_groups(
                    source,
                    disk,
                    max_file_bytes=args.max_file_size,
                    state_interval_bytes=args.state_interval,
                    append=args.append,
                    progress=bar.reach,
                )
        finally:
            disk.close()
            if is_new and not any(directory.iterdir()):  # refused before anything was written
                directory.rmdir()
    report(args, _as_json(made), *_lines(made, directory))
    return 0


def _source(paths: list[Path], stack: ExitStack) -> ClassicReader | LogRead:
    """What is imported: traditional files, or a directory of `.ibb` files. Raises IbbMasterError: it cannot be read."""
    from ibbmaster.classic.binlog import ClassicReader
    from ibbmaster.classic.head import without_unbegun
    from ibbmaster.classic.series import find_series
    from ibbmaster.ibb.file_name import parse_file_name

    [path, *others] = paths
    if not others and path.is_dir() and any(parse_file_name(one.name) is not None for one in path.iterdir()):
        import ibbmaster
        from ibbmaster.classic.exporting import LogRead

        return LogRead(stack.enter_context(ibbmaster.open(path)).engine)
    files = without_unbegun(find_series(paths))
    expect_readable(file.path for file in files)
    return ClassicReader(files)


def written(made: ImportReport | ConversionReport, files: Sequence[str], directory: Path, origin: str = "") -> str:
    """What came into which files, in a line."""
    into = f"{directory / files[0]}{'' if len(files) == 1 else f' to {files[-1]}'}"
    return f"{made.group_count} event groups with {made.event_bytes} bytes{origin} -> {into}"


def _lines(report: ImportReport, directory: Path) -> Iterator[str]:
    files = "1 file" if len(report.source_files) == 1 else f"{len(report.source_files)} files"
    yield written(report, report.ibb_files, directory, f" from {files}")
    if report.skipped_count:
        yield f"{report.skipped_count} groups were in the log already"
    yield f"GTID position {report.gtid_state.position()}"
    for notice in report.notices:
        yield f"note: {notice}"


def _as_json(report: ImportReport) -> dict[str, object]:
    return {
        "classic_files": list(report.source_files),
        "ibb_files": list(report.ibb_files),
        "event_groups": report.group_count,
        "skipped_event_groups": report.skipped_count,
        "event_bytes": report.event_bytes,
        "read_bytes": report.read_bytes,
        "out_of_order_event_groups": report.out_of_order_count,
        "server_restarts": report.restart_count,
        "gtid_position": str(report.gtid_state.position()),
        "gtid_state": str(report.gtid_state),
        "notices": list(report.notices),
    }
