"""`ibbmaster info`: what is in a log or in one file of it."""

import argparse
import json
from pathlib import Path

import ibbmaster
from ibbmaster.commands.info.log_info import log_info
from ibbmaster.commands.info.page import page
from ibbmaster.commands.info.text import text_lines
from ibbmaster.commands.printing.output import opened_output
from ibbmaster.kernel.loading import load_for_work
from ibbmaster.storage.ibb.file_name import parse_file_name
from .chosen import chosen_part
from .progress import progress
from .seek import seek_facts


def run(args: argparse.Namespace) -> int:
    path: Path = args.log
    file_no = parse_file_name(path.name) if path.is_file() else None
    with ibbmaster.open(path if file_no is None else path.parent) as log:
        load_for_work(log.stored_bytes)
        with progress(total=log.stored_bytes, is_wanted=not args.json) as bar:
            found = None if args.seek is None else log.seek(args.seek)
            facts = log_info(chosen_part(log, args), file_no, on_bytes=bar.add)
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
