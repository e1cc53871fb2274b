"""The options of serving: flags of `ibbmaster serve` and all defaults are made of this. Their help is in the table
beside it."""

from collections.abc import Iterator
from os import PathLike
from typing import Annotated, Any, Literal, TypedDict

from ibbmaster.facts import NULL, rows_of
from ibbmaster.logs.stages.options import PART, StageOptions
from ibbmaster.option import NamedOption, Option, named_options

TlsChoice = Literal["auto", "off", "required"]


class PlainServingOptions(TypedDict, total=False):
    """`ServingOptions` without `tls`."""

    host: Annotated[str, Option("127.0.0.1")]
    port: Annotated[int, Option(0)]
    user: Annotated[str, Option("repl")]
    password: Annotated[str, Option("")]
    auth: Annotated[Literal["native", "ed25519"], Option("native")]
    grant: Annotated[str | None, Option(None)]
    accounts: Annotated[str | PathLike[str] | None, Option(None)]
    tls_cert: Annotated[str | PathLike[str] | None, Option(None)]
    tls_key: Annotated[str | PathLike[str] | None, Option(None)]
    profile: Annotated[str | None, Option(None)]
    server_version: Annotated[str | None, Option(None)]
    opening_timestamp: Annotated[Literal["zero", "first-group"] | None, Option(None)]
    server_id: Annotated[int, Option(1)]
    max_connections: Annotated[int, Option(151)]
    max_statement_time: Annotated[int, Option(3600)]
    max_hold: Annotated[int | None, Option(None)]
    base: Annotated[str | PathLike[str] | None, Option(None)]
    lower_case_table_names: Annotated[Literal[0, 1, 2] | None, Option(None)]
    max_row_event_bytes: Annotated[int | str | None, Option(None)]


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

    tls: Annotated[TlsChoice, Option("auto")]


def serving_options() -> Iterator[NamedOption]:
    rows = rows_of(__package__, "serving_options")
    told = {name: [None if cell == NULL else cell for cell in cells] for name, *cells in rows}
    for named in named_options(ServingOptions):
        if named.name in told:
            heading, metavar, text = told[named.name]
            named = named._replace(option=named.option._replace(help=text or "", metavar=metavar, group=heading))
        yield named


def serving_option(name: str) -> NamedOption:
    return next(option for option in serving_options() if option.name == name)


def default_options() -> ServingOptions:
    defaults: Any = {name: option.default for name, option, _, _ in serving_options()}
    return defaults  # type: ignore[no-any-return]
