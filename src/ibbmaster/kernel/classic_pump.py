"""A kernel that reads traditional files, frames and sends by itself."""

from __future__ import annotations

from ibbmaster.kernel.classic_framing import K_IN_PARTS, K_MAY_BE_IN_PARTS, K_READ_AT, K_SOURCE_OFFSET, frame_classic
from ibbmaster.kernel.fields import Field, Progress, Status
from ibbmaster.kernel.memory import jit
from ibbmaster.kernel.pump import _pread, cork, send_framed

BYTES_PER_READ = 1 << 18  # that and what is made of it stay in the second cache of a core
BYTES_PER_LONG_READ = 1 << 20  # of groups that are longer


@jit
def _pump(file, socket, source, framing, roles, sending):
    """Frame and send until the budget is used, the socket takes no more, or the caller has to decide."""
    state, progress = framing.state, sending.progress
    wanted_bytes = BYTES_PER_READ
    while progress[Progress.FRAMED] < progress[Progress.BUDGET]:
        size = _pread(file, source.ctypes.data, wanted_bytes, progress[Progress.FILE_OFFSET])
        if progress[Progress.END] > 0 and state[K_IN_PARTS] == 0:
            size = min(size, progress[Progress.END] - progress[Progress.FILE_OFFSET])
        if size <= 0:
            return Status.NEED_MORE
        state[K_READ_AT], state[K_SOURCE_OFFSET], state[Field.OUT] = 0, progress[Progress.FILE_OFFSET], 0
        status = frame_classic(source, size, framing, roles, framing.segments[:0])
        has_advanced = state[K_READ_AT] > 0 or state[Field.OUT] > 0
        progress[Progress.FILE_OFFSET] += state[K_READ_AT]
        if not send_framed(socket, source, framing, sending):
            return Status.FULL
        if status == Status.DONE:
            state[K_IN_PARTS] = 0
            wanted_bytes = BYTES_PER_READ
        elif status == Status.FALLBACK:
            return Status.FALLBACK
        elif has_advanced:
            wanted_bytes = BYTES_PER_LONG_READ if state[K_IN_PARTS] else BYTES_PER_READ
        elif status == Status.NEED_MORE and size < wanted_bytes:
            return Status.NEED_MORE
        elif status == Status.NEED_MORE and wanted_bytes < BYTES_PER_LONG_READ:
            wanted_bytes = BYTES_PER_LONG_READ
        elif state[K_IN_PARTS] or not state[K_MAY_BE_IN_PARTS]:
            return status
        else:
            state[K_IN_PARTS] = 1
    return Status.FULL


@jit
def pump_classic(file, socket, source, framing, roles, sending):
    """As `_pump`, with the socket corked meanwhile; see `frame_classic`."""
    cork(socket, 1, sending.wanted)
    status = _pump(file, socket, source, framing, roles, sending)
    cork(socket, 0, sending.wanted)
    return status
