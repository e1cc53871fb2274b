"""A log as lines of text, made by kernels: no Python object for a row. The references: the printers of the formats."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ibbmaster.api.log import Log
from ibbmaster.arrow.collecting import event_batches
from ibbmaster.arrow.event_batch import EventBatch, wanted_groups
from ibbmaster.arrow.fast_reading import freeze
from ibbmaster.arrow.plan import ReadTask, find_fields, open_task, plan_tasks
from ibbmaster.kernel.calls import Kernels
from ibbmaster.position import LOG_START
from ibbmaster.printing.line_columns import LineBuffers, LineColumns
from ibbmaster.printing.line_plan import LineFormat
from ibbmaster.stages.span import LogSpan


class FastLines:
    """The lines of a log, or of a span of it, in runs of whole groups. `position` is where the last run begins."""

    def __init__(self, log: Log, kernels: Kernels, form: LineFormat, span: LogSpan | None = None) -> None:
        self._span = span
        self._log = log
        self._kernels = kernels
        self._form = form
        self.position = LOG_START
        self._pending: EventBatch | None = None

    def runs(self) -> Iterator[Iterator[Any]]:
        """Each run is a sequence of writable buffers, valid until the next run; read it whole before that. Raises
        IbbMasterError: something is damaged; the current run is incomplete. The reference says what it is."""
        freeze()
        self._log.bring_to_files()
        self._log.stored.expect_whole()
        options = self._log.read_options(uses_kernels=True)
        fields = find_fields(options)
        buffers = LineBuffers()
        for task in filter(self._is_wanted, plan_tasks(options, fields)):
            name = self._log.engine.file_name(task.log_range.file_no)
            maker = LineColumns(task, self._kernels, self._form, buffers, name)
            with closing(open_task(task)) as source:
                batches = event_batches(source, task.log_range, self._kernels, is_strict=True)
                found = (batch for batch in batches if len(batch.groups))
                self._pending = next(found, None)
                while self._pending is not None:
                    self.position = self._pending.start(0)
                    buffers.reuse()
                    yield self._run(maker, found)
            for _ in maker.finish():
                pass

    def _is_wanted(self, task: ReadTask) -> bool:
        """Whether the range of a task may have something of the span."""
        span, found = self._span, task.log_range
        if span is None:
            return True
        has_begun = (found.file_no, found.end_offset) > span.first_of(self._log.state)
        return has_begun and (span.groups.ends is None or (found.file_no, found.start_offset) < span.end)

    def _run(self, maker: LineColumns, found: Iterator[EventBatch]) -> Iterator[Any]:
        batch = self._pending
        while batch is not None:
            last = batch.identity(-1)
            if self._span is not None:
                batch = batch.of_groups(wanted_groups(batch.groups, self._span.groups))
            yield from maker.record_batches(batch)
            batch = next(found, None)
            if batch is None or batch.identity(0) != last:
                self._pending = batch
                return
        self._pending = None
