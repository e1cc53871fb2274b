"""`ibbmaster serve`: point a replica at a directory of binlog files."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import gc
import ipaddress
import json
import logging
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ibbmaster.cli import credentials
from ibbmaster.cli.purge import parse_size
from ibbmaster.errors import ConfigurationError

if TYPE_CHECKING:
    from ibbmaster.log.engine import BinlogEngine
    from ibbmaster.server.options import PrimaryOptions
    from ibbmaster.server.primary import Primary
    from ibbmaster.store.store_options import StoreOptions

log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:3307"  # one beside a MariaDB server's own port

EXAMPLES = """examples:
  ibbmaster serve /var/lib/binlogs
  ibbmaster serve /var/lib/binlogs --listen 0.0.0.0:3307 --user repl --password-file /run/secrets/repl
  ibbmaster serve captured --profile classic-10.11 --listen 127.0.0.1:0 --json

then, on the replica:
  CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=3307, MASTER_USER='repl',
    MASTER_PASSWORD='…', MASTER_USE_GTID=slave_pos;
  START SLAVE;
"""

OTHER_FILES = 512  # binlog files, blocks in the cache, and what a process needs
GC_THRESHOLDS = (50_000, 20, 50)  # a thousand waiting replicas are many objects to look at, and none to throw away


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `serve` to the command line."""
    parser = subparsers.add_parser(
        "serve",
        help="serve a directory of .ibb files to replicas and CDC clients",
        description="Serve a directory of .ibb files as a MariaDB replication primary; it may grow meanwhile.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="directory with binlog-NNNNNN.ibb files, or with traditional ones"
    )
    parser.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="HOST:PORT",
        help="address to listen on; port 0 takes a free one and prints it (default: %(default)s)",
    )
    credentials.add_arguments(parser)
    parser.add_argument(
        "--auth",
        choices=("native", "ed25519"),
        default="native",
        help="how the account proves its password: mysql_native_password or client_ed25519 (default: native)",
    )
    parser.add_argument(
        "--grant",
        metavar="LIST",
        help="what the account may do, as 'REPLICATION SLAVE, BINLOG MONITOR'; CONNECTION ADMIN lets it KILL the "
        "connections of others (default: all that only reads)",
    )
    parser.add_argument(
        "--accounts",
        type=Path,
        metavar="FILE",
        help="more accounts: a my.cnf-style file, a section for each, with password or password-file, auth and grant",
    )
    tls = parser.add_argument_group("TLS")
    tls.add_argument(
        "--tls",
        choices=("auto", "off", "required"),
        default="auto",
        help="offer TLS, do without, or refuse logins in clear (default: auto)",
    )
    tls.add_argument("--tls-cert", type=Path, metavar="FILE", help="PEM certificate chain (default: self-signed)")
    tls.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key")
    shape = parser.add_argument_group("what clients see")
    shape.add_argument(
        "--profile",
        metavar="NAME",
        help="shape of the stream: engine (MariaDB 12.3), compat (opens with ROTATE and GTID_LIST, for old tools), "
        "classic-10.11 or classic-11.8 (a traditional primary) (default: engine; for traditional files their writer)",
    )
    shape.add_argument(
        "--opening-timestamp",
        choices=("zero", "first-group"),
        help="time of the FORMAT_DESCRIPTION that opens a stream: 0 as in MariaDB 12.3, or that of the first group "
        "(default: zero with engine, first-group with compat)",
    )
    shape.add_argument("--server-id", type=int, default=1, metavar="N", help="this primary's server_id (default: 1)")
    shape.add_argument("--server-version", metavar="TEXT", help="version to claim, as 12.3.2-MariaDB-log")
    life = parser.add_argument_group("the directory")
    life.add_argument(
        "--own",
        action="store_true",
        help="own DIR: recover it, look after its files, let nobody else write there; without this DIR is only read, "
        "before, beside and after any process that writes it",
    )
    life.add_argument("--read-only", action="store_true", help="only read DIR (the default)")
    life.add_argument(
        "--expire", type=float, metavar="SECONDS", help="remove files last written so long ago (implies --own)"
    )
    life.add_argument(
        "--max-total", metavar="SIZE", help="remove the oldest files when all have more than this (implies --own)"
    )
    life.add_argument(
        "--replicas-needed",
        type=int,
        default=1,
        metavar="N",
        help="remove files only while so many replicas are connected (default: %(default)s)",
    )
    parser.add_argument("--max-connections", type=int, default=151, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print where it listens as one line of JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="log every connection and statement")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    options = read_options(args)

    import trio

    begin_log(is_verbose=args.verbose)

    from ibbmaster.server.primary import Primary

    gc.set_threshold(*GC_THRESHOLDS)
    allow_open_files(args.max_connections)
    with open_engine(args) as engine:
        primary = Primary(engine, speaking_like(engine, args, options))
        follow_replicas(engine, primary)
        trio.run(functools.partial(primary.serve, handle_signals=True, task_status=_Announcement(args, primary)))
    return 0


def begin_log(*, is_verbose: bool) -> None:
    """Log to the standard error output; what is verbose are our own lines, and not those of libraries."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    if is_verbose:
        logging.getLogger("ibbmaster").setLevel(logging.DEBUG)


def allow_open_files(connections: int) -> None:
    """Let this process have so many connections, as far as the system lets it choose."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + OTHER_FILES  # a replica may hold a block in a file of its own
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
        if limit < wanted:
            log.warning(
                "this process may open %d files: too few for %d connections (see ulimit -Hn)", limit, connections
            )


def holds_classic_files(directory: Path) -> bool:
    """Whether a directory has traditional binlog files, and none of the engine's."""
    from ibbmaster.ibb.file_name import parse_file_name

    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    is_numbered = any(re.fullmatch(r".+\.[0-9]{6,}(\.xz)?", name) for name in names)
    return is_numbered and not any(parse_file_name(name) is not None for name in names)


@contextlib.contextmanager
def open_engine(args: argparse.Namespace) -> Iterator[BinlogEngine]:
    """The engine for what is in a directory: one that only reads, unless the directory is to be owned.

    Raises:
        BusyError: it is to be owned, and another process writes there.
        ConfigurationError: options that exclude each other.
    """
    from ibbmaster.disk.local import RealDisk

    directory: Path = args.directory
    options = store_options(args)
    owns = args.own or args.expire is not None or args.max_total is not None
    if owns and args.read_only:
        raise ConfigurationError("--read-only excludes --own, --expire and --max-total: who only reads removes nothing")
    if holds_classic_files(directory):
        from ibbmaster.classic.engine import ClassicBinlog

        yield ClassicBinlog([directory])
        return
    if not owns:
        from ibbmaster.store.followed import FollowedDirectory

        yield FollowedDirectory(RealDisk(directory))
        return
    from ibbmaster.store.background import Background
    from ibbmaster.store.binlog_store import BinlogStore

    store = BinlogStore(RealDisk(directory), options)
    log.info("%d redo records applied, %d transactions rolled back", store.replayed_records, store.rolled_back)
    with store, Background(store):
        yield store


def store_options(args: argparse.Namespace) -> StoreOptions:
    """What the options say about the files' life.

    Raises:
        ConfigurationError: an option cannot be used as given.
    """
    from ibbmaster.store.store_options import StoreOptions

    if args.expire is not None and not args.expire > 0:
        raise ConfigurationError(f"--expire {args.expire}: expected a number of seconds above 0")
    if args.replicas_needed < 0:
        raise ConfigurationError(f"--replicas-needed {args.replicas_needed}: expected 0 or more")
    return StoreOptions(
        is_sparse=True,
        expire_s=args.expire,
        max_total_bytes=None if args.max_total is None else parse_size(args.max_total),
        replicas_needed_for_purge=args.replicas_needed,
    )


def follow_replicas(engine: BinlogEngine, primary: Primary) -> None:
    """Tell a store how many replicas are connected."""
    from ibbmaster.store.binlog_store import BinlogStore

    if isinstance(engine, BinlogStore):
        engine.connected_replicas = lambda: sum(session.dump_server_id is not None for session in primary.registry)


def speaking_like(engine: BinlogEngine, args: argparse.Namespace, options: PrimaryOptions) -> PrimaryOptions:
    """Traditional files are served as the server did that wrote them, where the command line says nothing else."""
    from ibbmaster.classic.engine import ClassicBinlog
    from ibbmaster.dump.profile import PROFILES

    if not isinstance(engine, ClassicBinlog):
        return options
    profile = options.profile
    if args.profile is None:
        profile = PROFILES["classic-10.11" if engine.server_version.startswith("10.") else "classic-11.8"]
    if args.server_version is None:
        profile = profile.with_version(engine.server_version)
    return dataclasses.replace(options, profile=profile)


def read_options(args: argparse.Namespace) -> PrimaryOptions:
    """The options of a primary, each checked before a file is touched.

    Raises:
        ConfigurationError: an option cannot be used as given.
    """
    from ibbmaster.cli.accounts import read_accounts
    from ibbmaster.dialogue import privileges
    from ibbmaster.dump.profile import PROFILES, OpeningTimestamp
    from ibbmaster.server.certificate import load_certificate, make_certificate
    from ibbmaster.server.options import PrimaryOptions
    from ibbmaster.wire.auth import make_account

    host, port = parse_listen(args.listen)
    user, password = credentials.find_account(args)
    if not password and not is_loopback(host):
        raise ConfigurationError(f"{host} can be reached from other machines: give the account a --password-file")
    if args.auth == "ed25519" and not password:
        raise ConfigurationError("--auth ed25519 needs a password")
    profile = PROFILES.get(args.profile or "engine")
    if profile is None:
        raise ConfigurationError(f"there is no profile {args.profile!r}: choose one of {', '.join(PROFILES)}")
    if not 1 <= args.server_id < 2**32:
        raise ConfigurationError(f"--server-id {args.server_id}: expected a number from 1 to {2**32 - 1}")
    if args.max_connections < 1:
        raise ConfigurationError(f"--max-connections {args.max_connections}: expected at least 1")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise ConfigurationError("--tls-cert and --tls-key go together: give both or neither")
    certificate = None
    if args.tls_cert is not None and args.tls != "off":
        certificate = load_certificate(args.tls_cert, args.tls_key)
    elif args.tls != "off":
        certificate = make_certificate()
    if args.server_version is not None:
        profile = profile.with_version(args.server_version)
    if args.opening_timestamp is not None:
        profile = dataclasses.replace(profile, opening_timestamp=OpeningTimestamp(args.opening_timestamp))
    requires_tls = args.tls == "required"
    others = read_accounts(args.accounts, requires_tls=requires_tls) if args.accounts is not None else []
    if user in {account.user for account, _ in others}:
        raise ConfigurationError(f"{args.accounts}: account {user!r} is the one that --user names")
    return PrimaryOptions(
        host=host,
        port=port,
        account=make_account(user, password, plugin=args.auth, requires_tls=requires_tls),
        held=privileges.READING if args.grant is None else privileges.parse_privileges(args.grant),
        other_accounts=tuple(others),
        certificate=certificate,
        profile=profile,
        server_id=args.server_id,
        connections_max=args.max_connections,
    )


def parse_listen(text: str) -> tuple[str, int]:
    """Split `HOST:PORT`, `[IPv6]:PORT` or `:PORT`.

    Raises:
        ConfigurationError: there is no port, or it is out of range.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"--listen {text!r}: expected HOST:PORT, as in {DEFAULT_LISTEN}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; names other than localhost count as reachable."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Announcement:
    """Says where the primary listens, once it does, and what to type on a replica."""

    def __init__(self, args: argparse.Namespace, primary: Primary) -> None:
        self._args = args
        self._options = primary.options

    def started(self, port: int | None = None) -> None:
        """Called by the primary with its port; the shape is that of a `trio.TaskStatus`."""
        args, options = self._args, self._options
        if args.json:
            print(json.dumps({"host": options.host, "port": port, "server_id": options.server_id}), flush=True)
            return
        tls = "off" if options.certificate is None else "self-signed" if options.certificate.is_automatic else "on"
        place = f"{options.host}:{port} (profile {options.profile.name}, TLS {tls})"
        print(f"serving {args.directory} on {place}", flush=True)
        if sys.stdout.isatty():
            print(
                f"on the replica: CHANGE MASTER TO MASTER_HOST='{options.host}', MASTER_PORT={port}, "
                f"MASTER_USER='{options.account.user}', MASTER_PASSWORD='…', MASTER_USE_GTID=slave_pos; START SLAVE;"
            )
