"""`ibbmaster record`: stand between a real primary and its consumer, and write a scenario of what happens."""

import argparse
import json
import signal
import sys

import trio

from ibbmaster.commands.recorder.recorded_connection import RecordedConnection
from ibbmaster.commands.recorder.recording import SCENARIO_NAME, Recording, expect_free
from ibbmaster.commands.recorder.relay import Relay, listen_on
from ibbmaster.errors import ConfigurationError
from ibbmaster.storage.codec.printable import address
from .log_lines import begin_log
from .service import allow_open_files, parse_listen

DEFAULT_PORT = 3306


def run(args: argparse.Namespace) -> int:
    """Relay until a signal comes, or the time is over."""
    source = parse_source(args.source)
    listen = parse_listen(args.listen)
    if args.max_connections < 1:
        raise ConfigurationError(f"--max-connections {args.max_connections}: expected at least 1")
    if args.seconds is not None and not args.seconds > 0:
        raise ConfigurationError(f"--seconds {args.seconds:g}: expected a number above 0")

    begin_log()
    allow_open_files(2 * args.max_connections)
    expect_free(args.to)

    async def record() -> Recording:
        listeners = await listen_on(*listen)
        recording = Recording(args.to, args.source)  # not made for an address that is taken
        one_by_one = trio.CapacityLimiter(1)
        relay = Relay(
            source,
            lambda client, peer: RecordedConnection(recording, one_by_one, peer),
            max_connections=args.max_connections,
        )
        try:
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async with trio.open_nursery() as nursery:
                    host, port = await nursery.start(relay.serve, listeners)
                    _announce(args, host, port)
                    with trio.move_on_after(float("inf") if args.seconds is None else args.seconds):
                        async for _ in signals:
                            break
                    nursery.cancel_scope.cancel()
        finally:
            recording.close()
        return recording

    recording = trio.run(record)
    _report(args, recording)
    return 1 if recording.problem else 0


def parse_source(text: str) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, or `[IPv6]:PORT`. Raises ConfigurationError: the host is missing, or the port out of
    range."""
    host, port = text, str(DEFAULT_PORT)
    if text.startswith("[") and text.endswith("]"):
        host = text[1:-1]
    elif text.count(":") == 1 or text.startswith("["):
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= 65535:
        raise ConfigurationError(f"--from {text!r}: expected HOST or HOST:PORT, as in 10.0.0.5:{DEFAULT_PORT}")
    return host, int(port)


def _announce(args: argparse.Namespace, host: str, port: int) -> None:
    if args.json:
        print(json.dumps({"host": host, "port": port}), flush=True)
    else:
        print(f"recording {args.source} on {address(host, port)} into {args.to}", flush=True)
    print("TLS and compression are not offered here, so that the conversation can be read", file=sys.stderr, flush=True)


def _report(args: argparse.Namespace, recording: Recording) -> None:
    counts = {
        "groups": recording.group_count,
        "faults": recording.fault_count,
        "connections": recording.connection_count,
    }
    scenario = args.to / SCENARIO_NAME
    if args.json:
        print(json.dumps({**counts, "scenario": str(scenario), "problem": recording.problem or None}), flush=True)
    else:
        told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        print(f"{told}: ibbmaster serve --scenario {scenario}", flush=True)
