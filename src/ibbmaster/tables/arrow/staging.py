"""The log of options after their stages, in whichever process reads it, perhaps on another machine."""

import contextlib
import functools
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import cast

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine, is_staged
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.logs.stages.options import StageOptions, stage_options, staged, staged_with, stages_of
from ibbmaster.logs.stages.span import LogSpan
from ibbmaster.logs.stages.stage import GroupTransform
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.name_case import NameCase
from ibbmaster.storage.disk.place import open_disk, place
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from .read_options import Granularity, ReadOptions
from .schema_reading import schema_of_log

REMEDY = "workers read the log themselves, so each must see it under the same path"
_SHOWS_EMPTY = (Granularity.EVENTS, Granularity.GROUPS)
_OF_GROUPS = frozenset(("after", "until", "domain", "server", "drop_empty"))  # stages that look into no group
_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


def staged_log(options: ReadOptions, log: LogEngine) -> LogEngine:
    """A log after the stages of options; closing it closes that log. Raises ConfigurationError, GtidError: an option
    cannot be used with this log; PositionError, FormatError, ClassicFormatError, StoreError: as
    `stages.options.staged`."""
    for number, given in enumerate(options.stages):
        find_history = _history_finder(options, log)
        given = _as_read(given, options)
        try:
            log = (
                staged_with(log, given, options.name_case, find_history, options.spans[number])
                if options.spans
                else staged(log, given, options.name_case, find_history)
            )
        except ConfigurationError as error:
            raise named_as_options(error) from None
    return log


def live_stages(options: ReadOptions) -> list[GroupTransform]:
    """For groups of a primary: they leave every group, so that each has its number. Raises ConfigurationError: an
    option is unusable."""
    case = options.name_case or NameCase.EXACT
    keeps = options.granularity not in _SHOWS_EMPTY
    return [
        stage
        for given in options.stages
        for stage in stages_of(
            GtidState(), cast(StageOptions, {**given, "drop_empty": False}) if keeps else given, case, SchemaHistory
        )
    ]


def with_spans(options: ReadOptions, log: LogEngine) -> ReadOptions:
    """Stages take the parts of the log that `log` has, so no reader looks for them."""
    spans: list[LogSpan | None] = []
    if not options.stages:
        return options
    from ibbmaster.logs.stages.engine import StagedLog

    for _ in options.stages:
        assert isinstance(log, StagedLog)
        spans.insert(0, log.span)
        log = log.inner
    return replace(options, spans=tuple(spans))


def history_cache_of(options: ReadOptions) -> HistoryCache:
    return HistoryCache(place(options.path), is_written=False, keeps=not options.stages)


def option_names() -> dict[str, str]:
    return {name: _camel(name.strip("_").split("_")) for name, *_ in stage_options()}


def named_as_options(error: ConfigurationError) -> ConfigurationError:
    names = set(option_names().values())

    def named(found: re.Match[str]) -> str:
        name = _camel(found[1].split("-"))
        return f"option {name}" if name in names else found[0]

    return ConfigurationError(_FLAG.sub(named, str(error)))


def _camel(words: Iterable[str]) -> str:
    first, *others = words
    return first + "".join(word.capitalize() for word in others)


def _as_read(given: StageOptions, options: ReadOptions) -> StageOptions:
    """Leaves out empty groups where a reader sees none of them: that reads faster."""
    if options.granularity in _SHOWS_EMPTY or not _OF_GROUPS.issuperset(cast(Mapping[str, object], given)):
        return given
    return {**given, "drop_empty": True}


def _history_finder(options: ReadOptions, log: LogEngine) -> Callable[[], SchemaHistory]:
    @functools.cache
    def logged() -> LoggedSchema:
        cache = history_cache_of(options if is_staged(log) else replace(options, stages=()))
        return schema_of_log(log.with_past, options.declarations, cache, case=options.name_case)

    return lambda: logged().history()


# Workers ---------------------------------------------------------------------------------------


def expect_log(options: ReadOptions, log_range: LogRange, *, is_strict: bool) -> None:
    """In a worker: check that a log is there, and the file of a range unless files may be missing. Raises StoreError:
    it is not; the error names this machine."""
    path = options.path
    if options.is_classic:
        if not place(path).exists():
            raise _unreachable(path, "no such file or directory")
    elif is_strict:
        name = format_file_name(log_range.file_no)
        with closing(open_disk(path)) as disk, contextlib.suppress(StoreError):
            disk.size(name)
            return  # listing ten thousand files takes long
        if log_range.file_no not in _numbers(path):
            raise _unreachable(path, f"{name} is not there, which the driver has seen")
    elif not _numbers(path):
        raise _unreachable(path, "no binlog files are there, which the driver has seen")


def _numbers(path: str) -> set[int]:
    try:
        with closing(open_disk(path)) as disk:
            return {number for name in disk.list() if (number := parse_file_name(name)) is not None}
    except StoreError as error:
        raise _unreachable(path, str(error).removeprefix(f"{path}: ").lower()) from None


def _unreachable(path: str, problem: str) -> StoreError:
    return StoreError(f"{path}: not reachable from worker {socket.gethostname()}: {problem}; {REMEDY}")
