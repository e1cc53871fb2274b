"""The options of serving, each said once: flags of `ibbmaster serve`, their help and all defaults are made of this."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Annotated, Any, Literal, TypedDict

from ibbmaster.option import NamedOption, Option, named_options
from ibbmaster.stages.options import PART, StageOptions

TLS, SHAPE = "TLS", "what clients see"
TlsChoice = Literal["auto", "off", "required"]


class PlainServingOptions(TypedDict, total=False):
    """`ServingOptions` without `tls`."""

    host: Annotated[str, Option("127.0.0.1")]
    port: Annotated[int, Option(0)]
    user: Annotated[str, Option("repl")]
    password: Annotated[str, Option("")]
    auth: Annotated[
        Literal["native", "ed25519"],
        Option(
            "native",
            help="how the account proves its password: mysql_native_password or client_ed25519 (default: %(default)s)",
        ),
    ]
    grant: Annotated[
        str | None,
        Option(
            None,
            help="what the account may do, as 'REPLICATION SLAVE, BINLOG MONITOR'; CONNECTION ADMIN lets it KILL the "
            "connections of others (default: all that only reads)",
            metavar="LIST",
        ),
    ]
    accounts: Annotated[
        str | PathLike[str] | None,
        Option(
            None,
            help="more accounts: a my.cnf-style file, a section for each, with password or password-file, auth "
            "and grant",
            metavar="FILE",
        ),
    ]
    tls_cert: Annotated[
        str | PathLike[str] | None,
        Option(None, help="PEM certificate chain (default: self-signed)", metavar="FILE", group=TLS),
    ]
    tls_key: Annotated[str | PathLike[str] | None, Option(None, help="its private key", metavar="FILE", group=TLS)]
    profile: Annotated[
        str | None,
        Option(
            None,
            help="which server to emulate: engine (MariaDB 12.3), compat (opens with ROTATE and GTID_LIST, for old "
            "tools), classic-10.11 or classic-11.8 (a traditional primary) (default: engine; for traditional files "
            "their writer)",
            metavar="NAME",
            group=SHAPE,
        ),
    ]
    server_version: Annotated[
        str | None, Option(None, help="version to claim, as 12.3.2-MariaDB-log", metavar="TEXT", group=SHAPE)
    ]
    opening_timestamp: Annotated[
        Literal["zero", "first-group"] | None,
        Option(
            None,
            help="time of the FORMAT_DESCRIPTION that opens a stream: 0 as in MariaDB 12.3, or that of the first "
            "group (default: zero with engine, first-group with compat)",
            group=SHAPE,
        ),
    ]
    server_id: Annotated[
        int, Option(1, help="this primary's server_id (default: %(default)s)", metavar="N", group=SHAPE)
    ]
    max_connections: Annotated[int, Option(151, help="how many at once (default: %(default)s)", metavar="N")]
    max_statement_time: Annotated[
        int,
        Option(
            3600,
            help="seconds that a statement may be at work, without those in which its client reads "
            "(default: %(default)s)",
            metavar="N",
        ),
    ]
    base: Annotated[
        str | PathLike[str] | None,
        Option(
            None,
            help="tables as they were before the log: what mariadb-dump writes, with rows and their position under "
            "--master-data --gtid; or CREATE TABLE statements",
            metavar="FILE",
            group=SHAPE,
        ),
    ]
    lower_case_table_names: Annotated[
        Literal[0, 1, 2] | None,
        Option(
            None,
            help="lower_case_table_names of the server that wrote the log: 0, 1, or 2, which was compared with no "
            "server (default: what the log says)",
            metavar="N",
            group=SHAPE,
        ),
    ]
    max_row_event_bytes: Annotated[
        int | str | None,
        Option(
            None,
            help="largest row event that SELECT reads, put together of fragments and unpacked (default: 4G)",
            metavar="SIZE",
            group=SHAPE,
        ),
    ]


class ServingOptions(PlainServingOptions, StageOptions, total=False):
    """How a log is served, and which part of it."""

    at_end: Annotated[
        Literal["stay", "close"],
        Option(
            "stay",
            help="where the range ends, or a recording: keep replicas connected, with heartbeats, or end their dumps "
            "in order (default: %(default)s)",
            group=PART,
        ),
    ]

    tls: Annotated[
        TlsChoice,
        Option("auto", help="offer TLS, do without, or refuse logins in clear (default: %(default)s)", group=TLS),
    ]


def serving_options() -> Iterator[NamedOption]:
    """All options of serving, in the order of this file."""
    return named_options(ServingOptions)


def serving_option(name: str) -> NamedOption:
    """One of them, for commands that have it, too."""
    return next(option for option in serving_options() if option.name == name)


def default_options() -> ServingOptions:
    """Each option as it is where it is left out."""
    defaults: Any = {name: option.default for name, option, _, _ in serving_options()}
    return defaults  # type: ignore[no-any-return]
