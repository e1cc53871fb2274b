"""Carries out what administrators ask of a primary: on the log that this process writes, and on the primary itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ibbmaster.errors import BusyError, GtidError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.log.purge import PurgeResult
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.primary.dialogue import statement as verbs
from ibbmaster.primary.dialogue.administration import GTID_DOMAIN
from ibbmaster.primary.dialogue.show import NO_TARGET_LOG, Note
from ibbmaster.replication.wire.refusal import RefusedError

#: What a statement is called, and what does the same for who may write the directory.
NAMES: dict[type, tuple[str, str]] = {
    verbs.PurgeLogs: ("PURGE BINARY LOGS", "ibbmaster purge"),
    verbs.FlushLogs: ("FLUSH BINARY LOGS", "ibbmaster flush"),
    verbs.ResetLog: ("RESET MASTER", "ibbmaster reset"),
    verbs.SetState: ("SET GLOBAL gtid_binlog_state", "ibbmaster reset --state"),
    verbs.Shutdown: ("SHUTDOWN", ""),
}


class WrittenLog(Protocol):
    """A log that this process alone writes. `bound`: why its GTID state may not change but by what is logged."""

    store: BinlogStore
    bound: str

    def purge(self, *, to: str | None = None, before: float | None = None) -> PurgeResult: ...

    def flush(self, *, forget_domains: Iterable[int] = ()) -> None: ...

    def reset(self, state: GtidState | str = "", *, if_empty: bool = False) -> None: ...


class LogAdministration:
    """Called from worker threads."""

    def __init__(self) -> None:
        self.log: WrittenLog | None = None

    def carry_out(self, what: verbs.Administrative) -> Sequence[Note]:
        """Returns warnings. Raises RefusedError: a server refuses that too, or this log must not have it; StoreError:
        the log cannot be written."""
        if isinstance(what, verbs.Shutdown):
            return ()  # for who has sent the answer
        log, (name, command) = self.log, NAMES[type(what)]
        if log is None:
            raise _refused(
                f"This process only reads the log, so it cannot execute {name}: serve the directory with --own, or run "
                f"`{command}` while nothing writes it"
            )
        changes_state = not isinstance(what, verbs.PurgeLogs) and what != verbs.FlushLogs()
        if changes_state and log.bound:
            raise _refused(f"{name} would part this log from where it belongs: {log.bound}")
        match what:
            case verbs.PurgeLogs(to=to, before=before):
                assert before is None or isinstance(before, float), "the dialogue has computed it"
                return self._purge(log, to, before)
            case verbs.FlushLogs(domain_ids=domain_ids):
                return self._flush(log, domain_ids)
            case verbs.ResetLog():
                log.reset()
            case verbs.SetState(text=text):
                self._set_state(log, text)
        return ()

    def _purge(self, log: WrittenLog, to: str | None, before: float | None) -> Sequence[Note]:
        """Source of the note: MariaDB 11.8, log.cc, MYSQL_BIN_LOG::purge_logs()."""
        begun = {file.name for file in log.store.files() if file.file_no <= log.store.end().file_no}
        if to is not None and to not in begun:
            raise NO_TARGET_LOG
        kept = log.purge(to=to, before=before).kept_file
        if kept is None:
            return ()
        is_active = kept == log.store.status().active_file
        reason = "it is the current active binlog" if is_active else "a replica, a transaction or a newer file needs it"
        return (("Note", 1375, f"Binary log '{kept}' is not purged because {reason}"),)

    def _flush(self, log: WrittenLog, domain_ids: Sequence[int]) -> Sequence[Note]:
        """Where no domain is to be forgotten after all, the file goes on. Source: MariaDB 12.3, log.cc,
        MYSQL_BIN_LOG::rotate_and_purge()."""
        log.store.sync()
        known = log.store.state().domain_ids
        try:
            if not domain_ids or not set(known).isdisjoint(domain_ids):
                log.flush(forget_domains=domain_ids)
        except BusyError as error:
            raise RefusedError(GTID_DOMAIN, "HY000", f"Could not delete gtid domain. Reason: {error}.") from None
        return [
            ("Warning", GTID_DOMAIN, f"The gtid domain being deleted ('{one}') is not in the current binlog state")
            for one in domain_ids
            if one not in known
        ]

    def _set_state(self, log: WrittenLog, text: str | None) -> None:
        """Source: MariaDB 12.3, sys_vars.cc, Sys_var_gtid_binlog_state::do_check()."""
        if log.store.current_state:
            raise RefusedError(
                1956,
                "HY000",
                "This operation is not allowed if any GTID has been logged to the binary log. Run RESET MASTER first "
                "to erase the log",
            )
        if text is None:
            raise RefusedError(1210, "HY000", "Incorrect arguments to SET")
        try:
            state = GtidState.parse(text)
        except GtidError:
            raise RefusedError(1941, "HY000", "Could not parse GTID list") from None
        log.reset(state, if_empty=True)


def _refused(text: str) -> RefusedError:
    return RefusedError(1290, "HY000", text)
