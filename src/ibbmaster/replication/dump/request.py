"""The request of a replica: COM_BINLOG_DUMP and the user variables it has set before."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, TypeAlias

from ibbmaster.errors import DuplicateDomainError, GtidError
from ibbmaster.gtid import GtidPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.wire.capability import StatusFlag
from .error import FATAL_ERROR_READING_BINLOG, DumpError
from .profile import Profile

if TYPE_CHECKING:
    from ibbmaster.replication.wire.command import BinlogDump

UserValue: TypeAlias = int | float | Decimal | str | bytes | None  # of a user variable; None is NULL

HEARTBEAT_PERIOD_IMPOSSIBLE = 1624
GTID_LIST_UNREADABLE = 1941
GTID_LIST_CONFLICT = 1943
GTID_POSITION_REQUIRED = 4246
NANOSECONDS_PER_S = 10**9
HEARTBEAT_PERIOD_MIN_S = 0.001  # MariaDB's limits for MASTER_HEARTBEAT_PERIOD
HEARTBEAT_PERIOD_MAX_S = 4294967.0
CAPABILITY_ENGINE = 5  # knows primaries that keep their binlog in the engine: MariaDB 12.3
CAPABILITY_MAX = 255
KNOWN_SIZE_MAX = 1024  # of a list of GTIDs that is parsed once for all replicas
_DOMAIN_IDS = re.compile(r"\s*[0-9]{1,10}\s*(?:,\s*[0-9]{1,10}\s*)*", re.ASCII)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_LEADING_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]{1,40})", re.ASCII)
#: MariaDB skips blanks before a number, but not after it.
_GTID_LIST = re.compile(r"(?:[ \t]*[0-9]{1,20}(?:-[ \t]*[0-9]{1,20}){2}(?:,(?!$)|$))*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """All that steers a dump. With `position` None the replica asks by file and offset, without `until`; else
    `file_name` and `file_position` mean nothing. `capability`: 0 to 5."""

    replica_server_id: int
    file_name: str = ""  # '': the oldest
    file_position: int = 4
    position: GtidPosition | None
    until: GtidPosition | None = None
    until_is_before: bool = False  # stop before the groups of `until`, not after them
    ignored_domain_ids: frozenset[int] = frozenset()  # the replica applies nothing of them
    wanted_domain_ids: frozenset[int] | None = None  # the replica applies only these; None: all
    is_strict: bool = False
    ignores_duplicates: bool = False
    capability: int = 0
    heartbeat_period_s: float = 0.0  # 0: no heartbeats
    wants_annotate_rows: bool = False
    leaves_out_marked: bool = False  # no events with the flag SKIP_REPLICATION
    has_semi_sync: bool = False  # every event packet has the semi-sync header
    knows_checksums: bool = False
    wants_rotate_checksum: bool = False  # of the ROTATE before the first FORMAT_DESCRIPTION
    waits_at_end: bool = True
    is_registered: bool = False  # COM_REGISTER_SLAVE came before: a replica, and not a tool
    status: int = StatusFlag.AUTOCOMMIT  # of its session

    def leaves_out(self, domain_id: int) -> bool:
        return domain_id in self.ignored_domain_ids or (
            self.wanted_domain_ids is not None and domain_id not in self.wanted_domain_ids
        )

    @property
    def position_advice(self) -> str:
        """Where a dump by file and offset can begin, if SHOW prints no place in the stream."""
        if not self.file_name.endswith(".ibb"):
            return ""
        return (
            "SHOW gives offsets in .ibb files, which the stream does not count: "
            "begin at 4, at a position it gave, or by GTID"
        )


def dump_request(
    command: BinlogDump,
    variables: Mapping[str, UserValue],
    profile: Profile,
    *,
    skip_replication: bool = False,
    is_registered: bool = False,
    status: int = StatusFlag.AUTOCOMMIT,
) -> DumpRequest:
    """`variables`: the session's user variables by lower-case name; `skip_replication`: the system variable; `status`:
    what the dump ends with. Raises DumpError: a GTID list cannot be read, or is missing where it is needed. Source:
    MariaDB 12.3, sql_repl.cc, init_binlog_sender(), mysql_binlog_send()."""
    from ibbmaster.replication.wire.command import (
        DumpFlag,  # who only looks where a dump would begin parses no commands
    )

    position = _gtid_list(variables, "slave_connect_state")
    capability = min(max(_number(variables.get("mariadb_slave_capability")), 0), CAPABILITY_MAX)
    if position is None and profile.requires_gtid:
        # A client library that connected again in the dialog has lost them; a replica that does sends all.
        is_lost = "mariadb_slave_capability" not in variables or "slave_gtid_strict_mode" in variables
        may_retry = capability >= CAPABILITY_ENGINE or (is_registered and is_lost)
        raise DumpError(
            "GTID starting position is required on master with --binlog-storage-engine enabled",
            f"replica {command.server_id} asks by file and offset ({command.file_name!r}, {command.position}): "
            "use MASTER_USE_GTID=slave_pos there, or a classic profile here",
            # replicas from before 12.3 connect again without end on every code but 1236
            code=GTID_POSITION_REQUIRED if may_retry else FATAL_ERROR_READING_BINLOG,
        )
    checksum = _text(variables.get("master_binlog_checksum")).upper()
    knows_checksums = "master_binlog_checksum" in variables
    has_unclear_checksum = knows_checksums and checksum not in ("NONE", "CRC32")
    return DumpRequest(
        replica_server_id=command.server_id,
        file_name=command.file_name,
        file_position=command.position,
        position=position,
        until=None if position is None else _gtid_list(variables, "slave_until_gtid"),
        until_is_before=_is_set(variables, "slave_gtid_until_before_gtids"),
        ignored_domain_ids=_domain_ids(variables, "slave_connect_state_domain_ids_ignore") or frozenset(),
        wanted_domain_ids=_domain_ids(variables, "slave_connect_state_domain_ids_do"),
        is_strict=_is_set(variables, "slave_gtid_strict_mode"),
        ignores_duplicates=_is_set(variables, "slave_gtid_ignore_duplicates"),
        capability=capability,
        heartbeat_period_s=_period_s(_number(variables.get("master_heartbeat_period"))),
        wants_annotate_rows=bool(command.flags & DumpFlag.SEND_ANNOTATE_ROWS),
        leaves_out_marked=skip_replication,
        has_semi_sync=_is_set(variables, "rpl_semi_sync_slave"),
        knows_checksums=knows_checksums,
        wants_rotate_checksum=checksum == "CRC32"
        or (has_unclear_checksum and profile.event_checksum is ChecksumAlgorithm.CRC32),
        waits_at_end=command.server_id != 0 and not command.flags & DumpFlag.NON_BLOCKING,
        is_registered=is_registered,
        status=status,
    )


def _domain_ids(variables: Mapping[str, UserValue], name: str) -> frozenset[int] | None:
    """As replicas since 13.1 send those of CHANGE MASTER. Raises DumpError: the variable holds something else."""
    text = _text(variables.get(name)).strip(" ()")
    if not text:
        return None
    if _DOMAIN_IDS.fullmatch(text) is None or any(int(number) >= 2**32 for number in text.split(",")):
        raise DumpError(
            f"Failed to read the domain ids in @{name}",
            f"@{name} is {text[:80]!r}: expected numbers of domains with commas between them",
            code=GTID_LIST_UNREADABLE,
        )
    return frozenset(map(int, text.split(",")))


def check_variable(name: str, value: UserValue) -> DumpError | None:
    """Why a user variable cannot have this value. A real primary says so only when the dump begins."""
    try:
        if name in ("slave_connect_state", "slave_until_gtid"):
            _gtid_list({name: value}, name)
        if name in ("slave_connect_state_domain_ids_ignore", "slave_connect_state_domain_ids_do"):
            _domain_ids({name: value}, name)
    except DumpError as error:
        return error
    if name == "master_heartbeat_period" and _number(value) < 0:
        return DumpError(
            "The requested value for the heartbeat period is either negative or exceeds the maximum allowed "
            f"({HEARTBEAT_PERIOD_MAX_S:.0f} seconds)",
            f"@{name} is {_text(value)[:40]}: expected nanoseconds from 0",
            code=HEARTBEAT_PERIOD_IMPOSSIBLE,
        )
    return None


def _gtid_list(variables: Mapping[str, UserValue], name: str) -> GtidPosition | None:
    value = variables.get(name)
    if value is None:
        return None
    text = _text(value)
    try:
        return _known_gtid_list(text) if len(text) <= KNOWN_SIZE_MAX else _parse_gtid_list(text)
    except DuplicateDomainError as error:
        raise DumpError(str(error), f"@{name} names a domain twice", code=GTID_LIST_CONFLICT) from None
    except GtidError as error:
        raise DumpError("Could not parse GTID list", f"@{name}: {error}", code=GTID_LIST_UNREADABLE) from None


def _parse_gtid_list(text: str) -> GtidPosition:
    if not _GTID_LIST.fullmatch(text):
        raise GtidError(f"{text[:80]!r} is not a list of GTIDs: expected domain-server-seqno,… without spaces")
    return GtidPosition.parse(text)


_known_gtid_list = functools.lru_cache(256)(_parse_gtid_list)  # replicas at one place say the same, and each twice


def _period_s(nanoseconds: int) -> float:
    if nanoseconds <= 0:
        return 0.0
    return min(max(nanoseconds / NANOSECONDS_PER_S, HEARTBEAT_PERIOD_MIN_S), HEARTBEAT_PERIOD_MAX_S)


def _is_set(variables: Mapping[str, UserValue], name: str) -> bool:
    return _number(variables.get(name)) != 0


def _text(value: UserValue) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _number(value: UserValue) -> int:
    """As 64 bits: NULL is 0, a text counts up to its first other character. Source: MariaDB 12.3,
    user_var_entry::val_int()."""
    match value:
        case None:
            number = 0
        case int():
            number = int(value)
        case float():
            number = 0 if math.isnan(value) else int(min(max(value, _INT64_MIN), _INT64_MAX))
        case Decimal():
            limited = Decimal(0) if value.is_nan() else min(max(value, Decimal(_INT64_MIN)), Decimal(_INT64_MAX))
            number = int(limited.to_integral_value(ROUND_HALF_UP))
        case _:
            found = _LEADING_NUMBER.match(_text(value))
            number = int(found[1]) if found else 0
    return min(max(number, _INT64_MIN), _INT64_MAX)
