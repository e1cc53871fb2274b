"""The part of a log chosen by flags of stages."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import ibbmaster
from ibbmaster.logs.stages.options import StageOptions, expect_tables, given_stages, stage_options


def chosen_stages(args: argparse.Namespace) -> StageOptions:
    said: Any = {name: getattr(args, name) for name, *_ in stage_options()}
    return said  # type: ignore[no-any-return]


def chosen_part(log: ibbmaster.Log, args: argparse.Namespace) -> ibbmaster.Log:
    """Notes go to standard error. Raises ConfigurationError: an option cannot be used with this log, or a pattern
    matches no table; PositionError, FormatError, ClassicFormatError, StoreError: as `Log.groups`."""
    given = given_stages(chosen_stages(args))
    if not given:
        return log
    part = log.through(**given)
    for note in part.staged.notes:
        print(f"ibbmaster: {note}", file=sys.stderr)
    expect_tables(part.staged)
    return part
