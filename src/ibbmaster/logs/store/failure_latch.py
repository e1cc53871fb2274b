"""The first error after which memory and disk may differ, and after which nothing is written."""

from __future__ import annotations

from collections.abc import Callable

from ibbmaster.errors import BusyError, DiskFullError, FailedError, StoreError


class _Guard:
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
        """As leaving the context does: each commit does without it."""
        if self._is_final(error):
            self._latch.note(error)


def _is_final(error: BaseException) -> bool:
    return not isinstance(error, (BusyError, DiskFullError))


class FailureLatch:
    """Contexts for what changes memory and disk, as `with latch.step:`.

    In a `step` every error is final but those that say that nothing was changed: something is busy, or the disk full.
    `work` is a step that does not begin after an error. A `repeatable` action may be repeated after anything but an
    error of the disk. An `unrepeatable` one fails with a full disk, too.

    Take the lock under which something runs before, and release it after: else another thread may sync between an error
    and its note, and that sync succeeds without the data of the first."""

    def __init__(self) -> None:
        self.failure: StoreError | None = None
        self.step = _Guard(self, _is_final)
        self.work = _Guard(self, _is_final, checks=True)
        self.repeatable = _Guard(
            self, lambda error: isinstance(error, StoreError) and not isinstance(error, DiskFullError)
        )
        self.unrepeatable = _Guard(self, lambda error: not isinstance(error, BusyError))

    def note(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error if isinstance(error, StoreError) else StoreError(f"interrupted by {error!r}")

    def check(self) -> None:
        """Raises FailedError: there was an error."""
        if self.failure is not None:
            raise FailedError(f"the log is not written any further after an error: {self.failure}")
