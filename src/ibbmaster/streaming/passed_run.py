"""The way to the commit record of a large group: found by the heads of chunks, and checked while it is sent."""

from __future__ import annotations

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import ChunkError
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import COMMIT, TYPE_MASK, ChunkColumn, Field, Status
from ibbmaster.log.cursor import ChunkCursor
from ibbmaster.log.pages import REREADS, PageReader
from ibbmaster.position import LogPosition
from ibbmaster.streaming.buffers import Buffers, Workspace, pages_to_border
from ibbmaster.streaming.framing_state import FramingState, Mark


class PassedRun:
    """From where the out-of-band records begin to their commit record, for one dump.

    What lies there was passed without a look at its checksums: it is good only once all of it was checked, in order,
    by a pump that sends it or by `check`. No group may begin on it.
    """

    def __init__(self, disk: ReadDisk, kernels: Kernels, buffers: Buffers, begin: FramingState, commit: int) -> None:
        """`commit` is the file offset of the commit record."""
        self.begin = begin
        self.commit = LogPosition(begin.position.file_no, commit)
        self.at = begin  # everything before was checked
        self.sent_to: Mark | None = None  # where the group was sent to from the way; None: nothing was
        self._disk = disk
        self._kernels = kernels
        self._buffers = buffers

    def check(self, start: FramingState | None = None) -> None:
        """Check what is left, or from a place on, where a record begins.

        Raises:
            FormatError: it is damaged, or not the way to a commit record.
            StoreError: the file cannot be read.
        """
        with self._buffers.workspace() as workspace:
            at = self.at if start is None else start
            rereads_left = REREADS
            while at.position < self.commit:
                after, status = self._step(workspace, at)
                if status == Status.BAD_PAGE and rereads_left:
                    rereads_left -= 1
                    PageReader(self._disk).fresh_page(after.position.file_no, after.position.page_no)
                elif after == at or status not in (Status.NEED_MORE, Status.NO_DATA, Status.FULL):
                    raise self._problem(after)
                at = after
            if at != FramingState(self.commit):
                raise self._problem(at)

    def _step(self, workspace: Workspace, at: FramingState) -> tuple[FramingState, int]:
        """Check some pages; returns the place after what is good, and why it ends there."""
        (file_no, _), page_no = at.position, at.position.page_no
        target = memoryview(workspace.pages)[: pages_to_border(page_no) * PAGE_SIZE]
        size = self._disk.read_into(format_file_name(file_no), page_no * PAGE_SIZE, target, only_cached=False)
        assert size is not None, "a read that may wait gives what is there"
        state, table = workspace.state, workspace.table
        state[Field.PAGE] = state[Field.VERIFIED] = 0
        state[Field.END] = self.commit.offset - page_no * PAGE_SIZE
        workspace.go_to(at)
        rows, status = self._kernels.index_chunks(workspace.pages, size // PAGE_SIZE, state, table, 0)
        types = table[:rows, ChunkColumn.TYPE] & TYPE_MASK
        if (types == COMMIT).any():
            start = int(table[(types == COMMIT).argmax(), ChunkColumn.START])
            return FramingState(LogPosition(file_no, page_no * PAGE_SIZE + start)), Status.FALLBACK
        return workspace.framing_state(file_no, page_no + int(state[Field.PAGE])), status

    def _problem(self, at: FramingState) -> Exception:
        """What is wrong at a place, as the reference finds it."""
        ChunkCursor.at(PageReader(self._disk), at.position).next_chunk()
        return ChunkError(at.position.location, f"this is not part of the group at {self.commit}")
