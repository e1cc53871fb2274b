"""`ibbmaster serve` with a pace, which is `ibbmaster replay`: serve a captured log as a recording is played."""

import argparse
import datetime
import logging
import sys
from collections.abc import Callable
from dataclasses import replace

import trio

from ibbmaster.api.log import Log, PlayedView
from ibbmaster.api.serving import CheckedOptions, RunningPrimary, StatusCall, run_primary, staged_log
from ibbmaster.logs.stages.options import StageOptions

log = logging.getLogger(__name__)

PROGRESS_S = 0.5


async def play(
    opened: Log,
    checked: CheckedOptions,
    args: argparse.Namespace,
    announce: Callable[[RunningPrimary], None],
    read_again: Callable[[], CheckedOptions],
) -> None:
    """Until SIGINT or SIGTERM; with `--at-end close` until all was sent."""
    chosen = staged_log(opened, checked.stages)
    pace = args.pace or "original"
    played = chosen.played(pace, rounds=args.loop, starts_when_read=args.start_when_connected)
    async with trio.open_nursery() as nursery:

        def begin(primary: RunningPrimary) -> None:
            announce(primary)
            nursery.start_soon(_watch, played, primary, args.at_end == "close")
            if pace == "step":
                nursery.start_soon(_step, played)

        whole = replace(checked, stages=StageOptions())
        told = StatusCall(begin)
        await run_primary(played, whole, handle_signals=True, task_status=told, read_again=read_again)
        nursery.cancel_scope.cancel()


async def _watch(played: PlayedView, primary: RunningPrimary, ends: bool) -> None:
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
    player = played.player
    followed = f"{replicas} replica{'s' * (replicas != 1)}"
    if player.last_time is None:
        has_begun = player.is_over or player.count
        return f"{player.state().position()}  {followed}" if has_begun else f"not begun, {followed}"
    moment = datetime.datetime.fromtimestamp(player.last_time, datetime.UTC)
    return f"{player.last_gtid}  {moment:%Y-%m-%d %H:%M:%S}Z  {rate:,.0f} transactions/s  {followed}"


async def _step(played: PlayedView) -> None:
    while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        text = line.strip()
        if text and not text.isdecimal():
            print(f"ibbmaster: {text[:60]!r}: expected Enter, or how many transactions", file=sys.stderr)
            continue
        played.player.step(int(text or 1))
        await trio.to_thread.run_sync(played.player.advance)
        print(played.player.last_gtid or "not begun", flush=True)
