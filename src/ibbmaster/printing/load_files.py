"""The data of LOAD DATA in statement format, as files that the statement names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ibbmaster.errors import EventError, StoreError
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.event.query import Query
from ibbmaster.event.statement.load_data import FILE_NUMBER, decode_load_data
from ibbmaster.event.types import EventType
from ibbmaster.sqltext.quoting import quoted

REPLACE = 2  # duplicates: the new row stays


class LoadFiles:
    """Puts data into files of a directory, and gives the statements that load them."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._gtid = ""
        self._paths: dict[int, Path] = {}

    def begin(self, gtid: str) -> None:
        """A group begins; files of others are nothing to it."""
        self._gtid = gtid
        self._paths.clear()

    def take(self, event: bytes) -> None:
        """An event that begins a file, continues or removes it.

        Raises:
            EventError: there is no directory for it, or it is damaged.
            StoreError: a file cannot be written.
        """
        if self._directory is None:
            raise EventError("LOAD DATA in statement format, whose data no statement holds: name a directory for it")
        body = event[EVENT_HEADER_SIZE:]
        if len(body) < FILE_NUMBER.size:
            raise EventError(f"data of LOAD DATA in {len(body)} bytes")
        (number,) = FILE_NUMBER.unpack_from(body)
        begins = event[TYPE_OFFSET] == EventType.BEGIN_LOAD_QUERY
        if begins:
            self._paths[number] = (self._directory / f"load-{self._gtid}-{len(self._paths) + 1}").absolute()
        path = self._path(number)
        try:
            if event[TYPE_OFFSET] == EventType.DELETE_FILE:
                path.unlink(missing_ok=True)
                return
            self._directory.mkdir(parents=True, exist_ok=True)
            with path.open("wb" if begins else "ab") as file:
                file.write(body[FILE_NUMBER.size :])
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from None

    def statement(self, event: bytes) -> Query:
        """An EXECUTE_LOAD_QUERY as the statement that loads its file.

        Raises:
            EventError: it is damaged, or its file did not begin.

        Source: MariaDB 12.3, log_event_client.cc, Execute_load_query_log_event::print().
        """
        load = decode_load_data(event)
        kept = b" REPLACE" if load.duplicates == REPLACE else b""
        name = f" LOCAL INFILE {quoted(str(self._path(load.number)))}".encode()
        text = load.query.text[: load.start] + name + kept + b" INTO" + load.query.text[load.end :]
        return dataclasses.replace(load.query, text=text)

    def _path(self, number: int) -> Path:
        if number not in self._paths:
            raise EventError(f"data of LOAD DATA in file {number}, which did not begin")
        return self._paths[number]
