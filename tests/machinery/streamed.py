"""A stream without Spark: the driver's calls in its order, each offset through JSON, each partition through pickle."""

import json
import pickle
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from ibbmaster.spark.stream import IbbStreamReader
from ibbmaster.spark.stream_reader import COLUMNS
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields


class StreamReading:
    """The `rows` that a stream has read, of all `batches` that had groups; the next one begins at `offset`."""

    def __init__(self, **options: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self.batches = 0
        self.offset: dict[str, Any] | None = None
        self._begin(options)

    def _begin(self, options: dict[str, str]) -> None:
        self._options = options
        parsed = parse_options(options)
        self._fields = find_fields(parsed)
        self.reader = IbbStreamReader(parsed, self._fields)

    def begin_anew(self, **options: str) -> None:
        self.close()
        options = {**self._options, **options}
        self._begin({name: value for name, value in options.items() if value})

    def begin_another(self) -> None:
        if self.offset is not None:
            self.offset.pop(COLUMNS, None)
        self.begin_anew()

    def close(self) -> None:
        self.reader.stop()

    def plan(self, limit: ReadLimit | None = None) -> tuple[dict[str, Any], list[bytes]]:
        if self.offset is None:
            self.offset = json.loads(json.dumps(self.reader.initialOffset()))
        limit = limit or self.reader.getDefaultReadLimit()
        end = json.loads(json.dumps(self.reader.latestOffset(self.offset, limit)))
        return end, [pickle.dumps(one) for one in self.reader.partitions(self.offset, end)]

    def read(self, partitions: list[bytes]) -> list[dict[str, Any]]:
        found = (batch for one in partitions for batch in self.reader.read(pickle.loads(one)))
        return [row for batch in found for row in batch.to_pylist()]

    def step(self, limit: ReadLimit | None = None) -> bool:
        end, partitions = self.plan(limit)
        if end == self.offset:
            return False
        self.rows += self.read(partitions)
        self.batches += 1
        self.reader.commit(end)
        self.offset = end
        return True

    def catch_up(self) -> None:
        while self.step():
            pass

    def all_at_once(self) -> bool:
        return self.step(ReadAllAvailable())

    @property
    def gtids(self) -> list[str]:
        found: list[str] = []
        for row in self.rows:
            if not found or found[-1] != row["_gtid"]:
                found.append(row["_gtid"])
        return found

    @property
    def lag(self) -> dict[str, int]:
        reported = self.reader.reportLatestOffset()
        assert reported is not None
        return dict(reported["lag"])
