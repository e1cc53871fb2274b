"""The data of LOAD DATA in statement format, as files that the statement names."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

from ibbmaster.errors import EventError, StoreError
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET, decode_event_header
from ibbmaster.event.query import FIXED, Query, decode_query
from ibbmaster.event.statement.logged import LOAD_FILE_SIZE, load_as_query
from ibbmaster.event.types import EventType
from ibbmaster.sqltext.quoting import quoted

FILE_NUMBER = struct.Struct("<I")
FILE = struct.Struct("<IIIB")  # number, where the text names the file and where that ends, what becomes of duplicates
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
        query = decode_query(load_as_query(event, decode_event_header(event).server_id))
        number, start, end, duplicates = FILE.unpack_from(event, EVENT_HEADER_SIZE + FIXED.size)
        if not start <= end <= len(query.text):
            raise EventError(f"LOAD DATA of {len(query.text)} bytes that names its file in bytes {start} to {end}")
        kept = b" REPLACE" if duplicates == REPLACE else b""
        name = f" LOCAL INFILE {quoted(str(self._path(number)))}".encode()
        text = query.text[:start] + name + kept + b" INTO" + query.text[end:]
        return dataclasses.replace(query, text=text)

    def _path(self, number: int) -> Path:
        if number not in self._paths:
            raise EventError(f"data of LOAD DATA in file {number}, which did not begin")
        return self._paths[number]


assert FILE.size == LOAD_FILE_SIZE
