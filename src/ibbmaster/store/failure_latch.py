"""The first error after which memory and disk may differ; from then on nothing is written any more."""

from __future__ import annotations

from collections.abc import Callable

from ibbmaster.errors import BusyError, DiskFullError, FailedError, StoreError


class _Guard:
    """Notes an error that leaves its context, if it is a final one."""

    __slots__ = ("_checks", "_is_final", "_latch")

    def __init__(self, latch: FailureLatch, is_final: Callable[[BaseException], bool], *, checks: bool = False) -> None:
        self._latch = latch
        self._is_final = is_final
        self._checks = checks

    def __enter__(self) -> None:
        if self._checks:
            self._latch.check()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.hear(error)

    def hear(self, error: BaseException) -> None:
        """Note an error that was caught, as leaving the context with it does: each commit does without the context."""
        if self._is_final(error):
            self._latch.note(error)


def _is_final(error: BaseException) -> bool:
    return not isinstance(error, (BusyError, DiskFullError))


class FailureLatch:
    """Where what changes memory and disk runs, as `with latch.step:`.

    In a `step` every error is final but those that say that nothing was changed: that something is busy, or the disk
    full. `work` is a step that does not begin after an error. What is `repeatable` is done again after anything but an
    error of the disk. What is `unrepeatable` fails with a full disk, too.

    The lock under which something runs is taken before and released after: else another
    thread goes on between the error and the note of it, and syncs once more what a sync has
    failed for. The second one succeeds, and nothing of that is on the disk.
    """

    def __init__(self) -> None:
        self.failure: StoreError | None = None
        self.step = _Guard(self, _is_final)
        self.work = _Guard(self, _is_final, checks=True)
        self.repeatable = _Guard(
            self, lambda error: isinstance(error, StoreError) and not isinstance(error, DiskFullError)
        )
        self.unrepeatable = _Guard(self, lambda error: not isinstance(error, BusyError))

    def note(self, error: BaseException) -> None:
        """Remember an error, if it is the first."""
        if self.failure is None:
            self.failure = error if isinstance(error, StoreError) else StoreError(f"interrupted by {error!r}")

    def check(self) -> None:
        """Whether something may be written. Raises FailedError: there was an error."""
        if self.failure is not None:
            raise FailedError(f"the log is not written any further after an error: {self.failure}")
