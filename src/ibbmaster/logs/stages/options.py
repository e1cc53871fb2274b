"""The stages of a log on its way to a reader: each option said once, and made into stages.

`Log.through` takes these options, `ibbmaster.serve` has them among its own, and commands have a flag for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from ibbmaster import errors
from ibbmaster.facts import NULL, rows_of
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.time_search import GivenTime, is_date, is_time, parse_time, shown_time, time_start
from ibbmaster.option import NamedOption, Option, flag_of, named_options
from ibbmaster.sqltext.table_name import TableName, TablePattern, divided, parse_table_pattern

if TYPE_CHECKING:
    from ibbmaster.logs.log.interface import LogEngine
    from ibbmaster.schema.history import SchemaHistory
    from ibbmaster.schema.name_case import NameCase
    from .engine import StagedLog
    from .renaming import NameMap
    from .span import LogSpan
    from .stage import GroupTransform
    from .table_pattern import TableChoice

PART = "which part of the log"
TABLES_SHOWN = 8
Many = str | Sequence[str] | None  # a text may have several, divided by commas
_HELP = rows_of(__package__, "options")


def _told(name: str, default: object = None) -> Option:
    heading, metavar, text = next(cells for option, *cells in _HELP if option == name)
    return Option(default, text, None if metavar == NULL else metavar, heading)


class StageOptions(TypedDict, total=False):
    """The part of a log, and what to leave out or change in it. Without options the log is as it is."""

    after: Annotated[str | None, _told("after")]
    until: Annotated[str | None, _told("until")]
    only: Annotated[Many, _told("only")]
    except_: Annotated[Many, _told("except_")]
    domain: Annotated[Many, _told("domain")]
    server: Annotated[Many, _told("server")]
    kinds: Annotated[Many, _told("kinds")]
    drop_empty: Annotated[bool, _told("drop_empty", False)]
    rename: Annotated[Many, _told("rename")]
    map_server_id: Annotated[Many, _told("map_server_id")]
    map_domain: Annotated[Many, _told("map_domain")]


def stage_options() -> Iterator[NamedOption]:
    return named_options(StageOptions)


def given_stages(options: Any) -> dict[str, Any]:
    """The given ones among some options; none means the log as it is."""
    defaults = {name: option.default for name, option, *_ in stage_options()}
    return {name: options[name] for name in defaults if options.get(name, defaults[name]) != defaults[name]}


def check_stages(options: StageOptions) -> None:
    """Raises ConfigurationError: a value cannot be read; TypeError: there is no option of that name."""
    from ibbmaster.schema.name_case import NameCase

    unknown = sorted(options.keys() - {name for name, *_ in stage_options()})
    if unknown:
        raise TypeError(f"there is no stage {unknown[0]!r}")
    for name in ("after", "until"):
        if (text := options.get(name)) is not None:
            _parsed(name, str(text))
    _kinds(options)
    _patterns(options, "only")
    _patterns(options, "except_")
    _ids(options, "domain")
    _ids(options, "server")
    _numbers(options, "map_server_id")
    _numbers(options, "map_domain")
    _names(options, lambda: NameCase.EXACT)


def staged_with(
    log: LogEngine,
    options: StageOptions,
    case: NameCase | None,
    find_history: Callable[[], SchemaHistory],
    span: LogSpan | None,
) -> StagedLog:
    """As `staged`, with a known part of the log. Raises ConfigurationError: an option cannot be used with this log."""
    from .engine import StagedLog

    check_stages(options)
    return StagedLog(log, list(stages_of(log.state(), options, case, find_history)), span)


def staged(
    log: LogEngine, options: StageOptions, case: NameCase | None, find_history: Callable[[], SchemaHistory]
) -> StagedLog:
    """A log as it is after these options. `case` says how its server compares names; without it the history of its
    schema says so, as far as it goes then. Raises ConfigurationError: an option cannot be used with this log;
    GtidError: a text is no position; PositionError, FormatError, ClassicFormatError, StoreError: as `Log.groups`."""
    from .engine import StagedLog
    from .span import span_of

    check_stages(options)
    notes: list[str] = []
    after, until = _place(log, options, "after", notes), _place(log, options, "until", notes)
    try:
        span = None if after is None and until is None else span_of(log, after, until)
    except errors.PositionError as error:
        days = [name for name in ("after", "until") if is_date(str(options.get(name)))]
        if not days:
            raise
        day = f"{flag_of(days[0])} '{options.get(days[0])} 00:00'"
        raise errors.ConfigurationError(f"{error}; to name a day, write {day}") from None
    if until is not None and span is not None and span.state is not None:
        notes += _judged(until, span.state.position())
    stages = list(stages_of(log.state(), options, case, find_history))
    return StagedLog(log, stages, span, notes=notes)


def renamed_table(name: TableName, options: StageOptions, find_case: Callable[[], NameCase]) -> TableName:
    """The name of a table after these options. Raises ConfigurationError: another table is to get its name."""
    from ibbmaster.schema.clause import NotUnderstoodError

    names = _names(options, find_case)
    try:
        return name if names is None else names.table(name)
    except NotUnderstoodError as error:
        raise errors.ConfigurationError(f"--rename: {error}") from None


def _judged(until: GtidPosition, ends: GtidPosition) -> Iterator[str]:
    """Notes on GTIDs that the log lacks. Raises ConfigurationError: another server has logged that number."""
    for domain_id, gtid in until.items():
        last = ends.get(domain_id)
        if last == gtid:
            continue
        if last is not None and last.seq_no == gtid.seq_no:
            raise errors.ConfigurationError(
                f"--until {gtid} is not in this log: transaction {gtid.seq_no} of its domain is {last}"
            )
        has = "the log has nothing before it" if last is None else f"it ends after {last}, the last one before it"
        yield f"--until {gtid} is not in this log: of domain {domain_id} {has}"


def _place(log: LogEngine, options: StageOptions, name: str, notes: list[str]) -> GtidPosition | None:
    text: Any = options.get(name)
    given = None if text is None else _parsed(name, str(text))
    if given is None or isinstance(given, GtidPosition):
        return given
    start = time_start(log, given, passes=name == "until")
    if name == "after" and start.group is None:
        ends = shown_time(start.found.last, given)
        raise errors.ConfigurationError(f"{flag_of(name)} {given} is after the end of this log, which is at {ends}")
    notes += [f"{flag_of(name)} {given} is position [{start.position}]", *start.notes]
    return start.position


def _parsed(name: str, text: str) -> GtidPosition | GivenTime:
    if is_time(text):
        return parse_time(flag_of(name), text)
    try:
        return GtidPosition.parse(text)
    except errors.GtidError:
        if not any(letter.isalpha() for letter in text):
            raise
    raise errors.GtidError(
        f"{flag_of(name)}: {text[:60]!r} is not a valid GTID or time: expected domain-server-seqno, as in 0-1-100, or "
        "a time, as '2026-01-31 12:00:00+01:00'"
    )


def stages_of(
    state: GtidState, options: StageOptions, case: NameCase | None, find_history: Callable[[], SchemaHistory]
) -> Iterator[GroupTransform]:
    """The stages of each group, for a log with `state`; if that is unknown no number is checked. `case` and
    `find_history` as in `staged`. Raises ConfigurationError: an option cannot be used with this log."""
    from .filtering import KINDS, ContentFilter, OriginFilter
    from .renaming import NameChange
    from .renumbering import OriginMap
    from .table_pattern import TableChoice

    def find_case() -> NameCase:
        return find_history().case if case is None else case

    drops_empty = options.get("drop_empty", False)
    domain_ids, server_ids = _ids(options, "domain"), _ids(options, "server")
    _expect_some("domain", domain_ids, {gtid.domain_id for gtid in state})
    _expect_some("server", server_ids, {gtid.server_id for gtid in state})
    if domain_ids or server_ids:
        yield OriginFilter(domain_ids=domain_ids, server_ids=server_ids, drops_empty=drops_empty)
    kinds = _kinds(options)
    only, leaves_out = _patterns(options, "only"), _patterns(options, "except_")
    tables = TableChoice(only, leaves_out, find_case) if only or leaves_out else None
    if tables is not None or kinds:
        yield ContentFilter(tables, kinds or KINDS, drops_empty=drops_empty, find_history=find_history)
    names = _names(options, find_case)
    if names is not None:
        yield NameChange(names)
    servers, domains = _numbers(options, "map_server_id"), _numbers(options, "map_domain")
    if servers or domains:
        _expect_apart("map_server_id", servers, {gtid.server_id for gtid in state})
        _expect_apart("map_domain", domains, {gtid.domain_id for gtid in state})
        yield OriginMap(server_ids=servers, domain_ids=domains)


def _expect_apart(name: str, numbers: dict[int, int], known: set[int]) -> None:
    """A map must name present numbers, and each number have its own afterwards."""
    _expect_some(name, frozenset(numbers), known)
    new = [numbers.get(number, number) for number in known | set(numbers)]
    twice = sorted({number for number in new if new.count(number) > 1})
    if twice:
        raise errors.ConfigurationError(f"{flag_of(name)}: two numbers of this log would be {twice[0]}")


def expect_tables(log: StagedLog, *, only: bool = False) -> None:
    """Check that patterns for tables, all or those of `only`, match some; reads the log up to where that is known. If
    the log cannot be read, or filtered, the check ends: readers up to there get the error. Raises ConfigurationError: a
    pattern matches none; the text says which tables there are; StoreError: the log cannot be read."""
    for choice in [tables for stage in log.stages if (tables := getattr(stage, "tables", None)) is not None]:
        with suppress(errors.ClassicFormatError, errors.EventError, errors.FormatError, errors.StageError):
            _expect_matched(log, choice, choice.only if only else (*choice.only, *choice.leaves_out))


def expect_only(log: StagedLog, options: StageOptions) -> None:
    """Check the patterns of `only`, where the same options may be used again on a longer log; nothing with `after` or
    `until`, as such a part may lack a table. Raises as `expect_tables`."""
    if options.get("only") and not (options.get("after") or options.get("until")) and log.state():
        expect_tables(log, only=True)


def _expect_matched(log: StagedLog, choice: TableChoice, patterns: Collection[TablePattern]) -> None:
    from .table_pattern import unmatched_error

    def unmatched() -> list[TablePattern]:
        return [one for one in choice.unmatched if one in patterns]

    asked = -1
    with closing(log.groups(log.start_of_file())) as groups:
        while (group := groups.next_group()) is not None:
            for _ in group.body:
                pass
            if len(choice.known) != asked:
                asked = len(choice.known)
                if not unmatched():
                    return
    if left := unmatched():
        raise unmatched_error("this log", left[0], map(str, choice.known))


def _expect_some(name: str, wanted: frozenset[int], known: set[int]) -> None:
    missing = sorted(wanted - known)
    if missing and known:
        there = ", ".join(map(str, sorted(known)[:TABLES_SHOWN]))
        raise errors.ConfigurationError(f"{flag_of(name)} {missing[0]}: this log has nothing of it, but of {there}")


def _values(options: StageOptions, name: str) -> list[str]:
    given: Any = options.get(name)
    texts = [given] if isinstance(given, str) else list(given or ())
    values = [value for text in texts for value in divided(str(text), ",")]
    if given is not None and not all(values or [""]):
        raise errors.ConfigurationError(f"{flag_of(name)} {given!r}: expected one or several, divided by commas")
    return values


def _ids(options: StageOptions, name: str) -> frozenset[int]:
    values = _values(options, name)
    for value in values:
        if not _is_number(value):
            raise errors.ConfigurationError(f"{flag_of(name)} {value[:60]!r}: expected numbers from 0 to {2**32 - 1}")
    return frozenset(map(int, values))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < 2**32


def _names(options: StageOptions, find_case: Callable[[], NameCase]) -> NameMap | None:
    from .renaming import NameMap

    values = _values(options, "rename")
    pairs = [divided(value, "=") for value in values]
    for value, pair in zip(values, pairs, strict=True):
        if len(pair) != 2 or not all(pair):
            raise errors.ConfigurationError(f"--rename {value[:60]!r}: expected OLD=NEW, as shop=stage")
    return NameMap([(old, new) for old, new in pairs], find_case) if pairs else None


def _numbers(options: StageOptions, name: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in _values(options, name):
        old, _, new = value.partition("=")
        if not (_is_number(old) and _is_number(new)):
            raise errors.ConfigurationError(f"{flag_of(name)} {value[:60]!r}: expected OLD=NEW, as 1=7")
        if int(old) in found:
            raise errors.ConfigurationError(f"{flag_of(name)}: {old} is given twice")
        found[int(old)] = int(new)
    if name == "map_server_id" and 0 in found.values():
        raise errors.ConfigurationError("--map-server-id: a server id is not 0")
    return found


def _kinds(options: StageOptions) -> list[Any]:
    from .filtering import KINDS

    values = _values(options, "kinds")
    for value in values:
        if value not in KINDS:
            raise errors.ConfigurationError(f"--kinds {value[:60]!r}: choose of {', '.join(KINDS)}")
    return values


def _patterns(options: StageOptions, name: str) -> list[TablePattern]:
    return [parse_table_pattern(value) for value in _values(options, name)]
