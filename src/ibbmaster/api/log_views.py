"""Logs made of a log: a part of it, one of its files, or a recording that is played."""

from __future__ import annotations

from typing import NoReturn

from ibbmaster.api.log import Log
from ibbmaster.api.log_files import one_file_refusal
from ibbmaster.errors import ConfigurationError
from ibbmaster.log.history_cache import HistoryCache
from ibbmaster.log.interface import LogEngine, LogFile
from ibbmaster.player.played_log import PlayedLog
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.stages.engine import StagedLog
from ibbmaster.stages.options import StageOptions, renamed_table


class LogView(Log):
    """What is made of a log. What copies or checks files does that with all of a log, and is refused here."""

    def __init__(self, log: Log, engine: LogEngine) -> None:
        super().__init__(log.path, engine, stored=log.stored, name_case=log.name_case, row_event_max=log.row_event_max)
        self._schema = log._schema
        self._whole = log

    @property
    def history_cache(self) -> HistoryCache:
        return HistoryCache(self.path, is_written=False, keeps=False)

    def bring_to_files(self) -> None:
        self._whole.bring_to_files()

    def _expect_files(self, what: str) -> None:
        self._whole._expect_files(what)

    def verify(self, **options: object) -> NoReturn:
        raise self._refused("verify")

    def back_up(self, *given: object, **options: object) -> NoReturn:
        raise self._refused("back_up")

    def _refused(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"{what} reads the files of a log, and a log after stages has none: `ibbmaster convert` writes them with "
            "the same options"
        )


class StagedView(LogView):
    """A log after stages: `staged`, those of `options` the last."""

    def __init__(self, log: Log, engine: StagedLog, options: StageOptions | None = None) -> None:
        super().__init__(log, engine)
        self.staged = engine
        if options:
            self.stages, self.spans = (*log.stages, options), (*log.spans, engine.span)
            case = log.name_case or NameCase.EXACT
            self._schema = {
                str(renamed_table(parse_table_name(name), options, lambda: case)): one
                for name, one in log._schema.items()
            }


class FileView(StagedView):
    """What one `.ibb` file of a log has."""

    def __init__(self, log: Log, engine: StagedLog, name: str) -> None:
        super().__init__(log, engine)
        self.stages, self.spans = (StageOptions(),), (engine.span,)
        self._name = name

    @property
    def files(self) -> list[LogFile]:
        return [file for file in super().files if file.name == self._name]

    def _refused(self, what: str) -> ConfigurationError:
        return one_file_refusal(what, self.path / self._name)


class PlayedView(LogView):
    """A recording that is played by `player`."""

    def __init__(self, log: Log, engine: PlayedLog) -> None:
        super().__init__(log, engine)
        self.stored = log.stored.named_by(engine)
        self.player = engine

    def _expect_files(self, what: str) -> None:
        raise ConfigurationError(f"{what} reads the files of a log, and a recording that is played has none: read that")
