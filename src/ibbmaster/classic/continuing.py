"""Whether one file of a traditional binlog continues another."""

from __future__ import annotations

from ibbmaster.classic.head import FileHead
from ibbmaster.classic.series import ClassicFile
from ibbmaster.errors import GapError
from ibbmaster.gtid import GtidState


def continued(before: ClassicFile, state: GtidState, file: ClassicFile, head: FileHead) -> tuple[GtidState, str | None]:
    """Compare what a file says was logged before it with `state`, at which the file before it ended.

    Returns what was logged before the file, and what a user should know about that.

    Raises GapError: files between the two are missing, or the two are not of one binlog.
    """
    listed = head.state
    if listed is None or listed == state:
        return state, None
    dropped = set(state.domain_ids) - set(listed.domain_ids)
    expected = state.copy()
    for domain_id in dropped:
        expected.drop_domain(domain_id)
    if not dropped or head.is_restart or listed != expected:  # a server that starts forgets nothing
        raise GapError(
            file.name,
            head.state_offset,
            f"it begins at the GTID state {_text(listed)}, but {before.name} ends at {_text(state)}: "
            f"{missing_between(before, file)}",
            missing_between(before, file),
        )
    names = ", ".join(map(str, sorted(dropped)))
    return listed.copy(), f"{file.name}: the server forgot domain {names} here (DELETE_DOMAIN_ID)"


def missing_between(before: ClassicFile, file: ClassicFile) -> str:
    """What is to be said of two files that do not continue each other."""
    return f"files between {before.name} and {file.name} are missing, or they are not of one binlog"


def _text(state: GtidState) -> str:
    return f"'{state}'" if len(state) else "of an empty binlog"
