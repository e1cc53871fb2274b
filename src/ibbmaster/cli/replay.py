"""`ibbmaster replay`: serve a captured log as a recording is played."""

from __future__ import annotations

import argparse
import datetime
import functools
import logging
import sys
from typing import Any

import trio

import ibbmaster
from ibbmaster.api.log import Log, PlayedView
from ibbmaster.api.serving import CheckedOptions, RunningPrimary, StatusCall, check_options, run_primary
from ibbmaster.cli import serve
from ibbmaster.stages.options import expect_tables, given_stages

log = logging.getLogger(__name__)

PROGRESS_S = 0.5


def run(args: argparse.Namespace) -> int:
    """Play until SIGINT or SIGTERM; with `--at-end close` until all was sent."""
    options: Any = serve.serving_options(args)
    stages: Any = given_stages(options)
    checked = check_options(**{name: value for name, value in options.items() if name not in stages})
    serve.begin_log(is_verbose=args.verbose)
    serve.allow_open_files(args.max_connections)
    with ibbmaster.open(args.directory) as opened:
        chosen: Log = opened
        if stages:
            part = opened.through(**stages)
            for note in part.staged.notes:
                log.info("%s", note)
            expect_tables(part.staged)
            chosen = part
        played = chosen.played(args.pace, rounds=args.loop, starts_when_read=args.start_when_connected)
        trio.run(functools.partial(_play, played, checked, args))
    return 0


async def _play(played: PlayedView, checked: CheckedOptions, args: argparse.Namespace) -> None:
    async with trio.open_nursery() as nursery:

        def begin(primary: RunningPrimary) -> None:
            serve.announce(primary, as_json=args.json)
            nursery.start_soon(_watch, played, primary, args.at_end == "close")
            if args.pace == "step":
                nursery.start_soon(_step, played)

        await run_primary(played, checked, handle_signals=True, task_status=StatusCall(begin))
        nursery.cancel_scope.cancel()


async def _watch(played: PlayedView, primary: RunningPrimary, ends: bool) -> None:
    """Show how far the recording is, and what there is to say at its end."""
    player = played.player
    shown = sys.stderr.isatty()
    count, has_ended = 0, False
    while True:
        await trio.sleep(PROGRESS_S)
        is_over = await trio.to_thread.run_sync(lambda: player.is_over)
        replicas = len(primary.replicas)
        if shown:
            rate = (player.count - count) / PROGRESS_S
            print(f"\r\x1b[K{progress_text(played, rate, replicas)}", end="", file=sys.stderr, flush=True)
        count = player.count
        if is_over and not has_ended:
            has_ended = True
            log.info("the recording has ended at %s", player.state().position())
            if player.failure is not None:
                log.error("%s", player.failure)
        if ends and is_over and player.was_read and not replicas:
            primary.stop()
            return


def progress_text(played: PlayedView, rate: float, replicas: int) -> str:
    """One line: the last GTID, the time in the recording, the rate, and how many replicas follow."""
    player = played.player
    followed = f"{replicas} replica{'s' * (replicas != 1)}"
    if player.last_time is None:
        has_begun = player.is_over or player.count
        return f"{player.state().position()}  {followed}" if has_begun else f"not begun, {followed}"
    moment = datetime.datetime.fromtimestamp(player.last_time, datetime.UTC)
    return f"{player.last_gtid}  {moment:%Y-%m-%d %H:%M:%S}Z  {rate:,.0f} transactions/s  {followed}"


async def _step(played: PlayedView) -> None:
    """Let one transaction be due at each line of input, or as many as it says."""
    while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        text = line.strip()
        if text and not text.isdecimal():
            print(f"ibbmaster: {text[:60]!r}: expected Enter, or how many transactions", file=sys.stderr)
            continue
        played.player.step(int(text or 1))
        await trio.to_thread.run_sync(played.player.advance)
        print(played.player.last_gtid or "not begun", flush=True)
