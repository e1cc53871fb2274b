"""`ibbmaster info`: what is in a log or in one file of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import ibbmaster
from ibbmaster.api.log_files import LogFiles, log_path, opened_files, stored_bytes
from ibbmaster.api.seeking import start_at
from ibbmaster.commands.info.log_info import log_info
from ibbmaster.commands.info.page import page
from ibbmaster.commands.info.text import text_lines
from ibbmaster.commands.printing.output import opened_output
from ibbmaster.kernel.loading import load_for_work
from ibbmaster.logs.stages.options import given_stages
from ibbmaster.storage.ibb.file_name import parse_file_name
from .progress import progress
from .seek import seek_facts

if TYPE_CHECKING:
    from ibbmaster.logs.log.interface import LogEngine


def run(args: argparse.Namespace) -> int:
    path = log_path(args.log)
    file_no = parse_file_name(path.name) if path.is_file() else None
    if file_no is not None:
        path = path.parent
    with _opened(path, args) as (engine, files):
        size = stored_bytes(path, files.engine.files())
        load_for_work(size)
        with progress(total=size, is_wanted=not args.json) as bar:
            found = None if args.seek is None else start_at(path, files.engine, files, args.seek)
            facts = log_info(path, engine, files, file_no, on_bytes=bar.add)
    if found is not None:
        facts["seek"] = seek_facts(found)
    if args.html is not None:
        with opened_output(args.html) as output:
            output.write(page(facts).encode("utf-8", "backslashreplace"))
    if args.json:
        print(json.dumps(facts))
    elif args.html is None:
        for line in text_lines(facts):
            print(line)
        if found is not None:
            print(f"\n{found.explain()}")
    return 0


@contextmanager
def _opened(path: Path, args: argparse.Namespace) -> Iterator[tuple[LogEngine, LogFiles]]:
    """A log, or the part of it that stages choose, which alone needs what knows tables."""
    if not given_stages(vars(args)):
        with opened_files(path) as files:
            yield files.engine, files
    else:
        from .chosen import chosen_part

        with ibbmaster.open(path) as log:
            part = chosen_part(log, args)
            yield part.engine, part.stored
