"""Settings of a session that its DDL depends on: character sets that no clause names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.sqltext.moment import SECOND_US, moment_text, parse_time_zone
from ibbmaster.sqltext.quoting import quoted
from ibbmaster.versions import Difference
from .clause import CharsetClause, NotUnderstoodError
from .collations import character_sets, charset_of_collation, collation_name, find_charset, find_collation

EXPLICIT_TIMESTAMPS = 1 << 24  # of FLAGS2: TIMESTAMP columns get only what is written
# The releases of 10.5 to 10.9 whose FLAGS2 begin to have it; later servers do.
TELL_TIMESTAMPS = {1005: 17, 1006: 9, 1007: 5, 1008: 4, 1009: 2}
DEFAULT_COLLATION = "utf8mb4_general_ci"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSession:
    """Settings of the session that ran a statement; None where unknown.

    Attributes:
        collation: `collation_server`, of a database that names none.
        collations: by character set, what replaces its default collation.
        has_explicit_timestamps: `explicit_defaults_for_timestamp`.
        tells_timestamps: whether the log has that; else it is the usual value.
        began_at: seconds and microseconds since 1970.
        time_zone_s: seconds east of UTC.
        client_charset, connection_collation: kept by a view.
        end_of_time: the last TIMESTAMP(6) in UTC as SQL, the ROW END of current rows.
        utf8: the meaning of this word; `old_mode` may change it, which no event shows.
    """

    collation: str = DEFAULT_COLLATION
    collations: Mapping[str, str] = field(default_factory=dict)
    has_explicit_timestamps: bool = True
    tells_timestamps: bool = True
    began_at: tuple[int, int] | None = None
    end_of_time: str | None = None
    time_zone_s: int | None = None
    utf8: str = "utf8mb3"
    client_charset: str = "utf8mb4"
    connection_collation: str = DEFAULT_COLLATION

    @classmethod
    def of(cls, statement: LoggedStatement, timestamp: int | None) -> "SchemaSession":
        """`timestamp` is of its group, in seconds since 1970."""
        is_explicit = statement.flags is None or bool(statement.flags & EXPLICIT_TIMESTAMPS)
        known = [(collation_name(own), collation_name(other)) for own, other in statement.collations]
        return cls(
            collation=_known(statement.server_collation),
            collations={charset_of_collation(own): other for own, other in known if own and other},
            has_explicit_timestamps=is_explicit,
            tells_timestamps=is_explicit or _tells_timestamps(statement.server_version or 0),
            began_at=None if timestamp is None else (timestamp, statement.microseconds),
            time_zone_s=time_zone_of(statement),
            client_charset=charset_of_collation(_known(statement.client_collation)),
            connection_collation=_known(statement.connection_collation),
            end_of_time=_end_of_time(statement.server_version),
            utf8="utf8mb4" if Difference.UTF8_IS_UTF8MB4.holds(statement.server_version or 0) else "utf8mb3",
        )

    def now(self, digits: int) -> str | None:
        """In UTC as a TIMESTAMP has it, as SQL; None if unknown."""
        if self.began_at is None:
            return None
        seconds, microseconds = self.began_at
        return quoted(moment_text(seconds * SECOND_US + microseconds, digits))

    def default_collation(self, charset: str) -> str:
        return self.collations.get(charset) or character_sets()[charset].old_default

    def resolve(self, clause: CharsetClause, default: str) -> str:
        """The collation of a clause; `default` is that around it. Raises NotUnderstoodError: an unknown one."""
        charset = charset_of_collation(default)
        found = default
        if clause.charset is not None and clause.charset.upper() != "DEFAULT":
            known = self.utf8 if clause.charset.lower() == "utf8" else find_charset(clause.charset)
            if known is None:
                raise NotUnderstoodError(f"character set {clause.charset[:64]!r} is not known")
            charset, found = known, self.default_collation(known)
        if clause.collation is not None:
            if clause.collation.upper() == "DEFAULT":
                return self.default_collation(charset)
            written = clause.collation
            if written.lower().startswith("utf8_"):
                written = f"{self.utf8}_{written[len('utf8_') :]}"
            name = find_collation(written, charset)
            if name is None:
                raise NotUnderstoodError(f"collation {clause.collation[:64]!r} is not known")
            return name
        return f"{charset}_bin" if clause.is_binary and charset != "binary" else found


def _known(number: int | None) -> str:
    return (collation_name(number) if number is not None else None) or DEFAULT_COLLATION


def _end_of_time(server_version: int | None) -> str | None:
    if server_version is None:
        return None
    is_late = Difference.HISTORY_ENDS_IN_2106.holds(server_version)
    return "'2106-02-07 06:28:15.999999'" if is_late else "'2038-01-19 03:14:07.999999'"


def _tells_timestamps(version: int) -> bool:
    """Whether a server logs `explicit_defaults_for_timestamp`; an unknown version counts as new. Source: MariaDB 10.11,
    log_event.cc, Format_description_log_event::deduct_options_written_to_bin_log()."""
    series, release = divmod(version, 100)
    return not version or series > max(TELL_TIMESTAMPS) or release >= TELL_TIMESTAMPS.get(series, 100)


def time_zone_of(statement: LoggedStatement) -> int | None:
    """Seconds east of UTC; None if the log does not show it."""
    name = statement.time_zone.upper()
    if name in ("", "SYSTEM"):
        return None
    return 0 if name == "UTC" else parse_time_zone(name)
