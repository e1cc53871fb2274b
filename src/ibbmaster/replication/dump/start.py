"""Whether a dump may begin where the replica wants, and if not, why."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from .error import DumpError
from .profile import Profile
from .request import DumpRequest

FILE_POSITION_MIN = 4  # after the first bytes of a traditional file

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>[0-9]{1,20})(?P<after>[^0-9]*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheck:
    """`unknown_domain_ids`: domains that the log lacks. For domains that the replica leaves out, `position` is the end
    of the log, or the replica's place if that is ahead: `awaited_domain_ids`. `until`: the rest of its UNTIL."""

    position: GtidPosition
    unknown_domain_ids: frozenset[int] = frozenset()
    awaited_domain_ids: frozenset[int] = frozenset()
    until: GtidPosition | None = None


def check_start(request: DumpRequest, state: GtidState) -> StartCheck:
    """Compare a replica's position with what was logged, by domain. All that is applied here is in the log; MariaDB
    also knows positions that it has as a replica. Raises DumpError: the log lacks one. Source: MariaDB 12.3,
    sql_repl.cc, check_slave_start_position()."""
    position = _without_ignored(request, state)
    until = None if request.until is None else dict(request.until)
    unknown, awaited = set(), set()
    for gtid in position.values():
        if is_logged(gtid, state):
            continue
        if request.leaves_out(gtid.domain_id):
            awaited.add(gtid.domain_id)
            continue
        latest = state.latest(gtid.domain_id)
        if latest is None:
            unknown.add(gtid.domain_id)
        elif request.ignores_duplicates and latest.seq_no < gtid.seq_no:
            continue
        elif until is not None and (gtid.domain_id not in until or is_logged(until[gtid.domain_id], state)):
            until.pop(gtid.domain_id, None)  # the end lies before the start: nothing of this domain
        else:
            raise not_in_binlog(gtid, state)
    return StartCheck(
        position=position,
        unknown_domain_ids=frozenset(unknown),
        awaited_domain_ids=frozenset(awaited),
        until=None if until is None else GtidPosition(until.values()),
    )


def _without_ignored(request: DumpRequest, state: GtidState) -> GtidPosition:
    """As if the replica had all that is logged of domains it leaves out."""
    position = GtidPosition() if request.position is None else request.position
    if not request.ignored_domain_ids and request.wanted_domain_ids is None:
        return position
    logged = [gtid for gtid in state.position().values() if request.leaves_out(gtid.domain_id)]
    own = [gtid for gtid in position.values() if not (request.leaves_out(gtid.domain_id) and is_logged(gtid, state))]
    return GtidPosition({gtid.domain_id: gtid for gtid in (*logged, *own)}.values())


def choose_file(request: DumpRequest, file_names: Sequence[str]) -> int:
    """The index of the file in which a dump by file begins. Raises DumpError: there is no such file, or the offset lies
    before its first event. Source: MariaDB 12.3, sql_repl.cc, init_binlog_sender()."""
    if not file_names or (request.file_name and request.file_name not in file_names):
        known = f"there are {file_names[0]} to {file_names[-1]}" if file_names else "there are no files"
        raise DumpError(
            "Could not find first log file name in binary log index file",
            f"the replica asks for file {request.file_name[:100]!r}; {known}",
        )
    if request.file_position < FILE_POSITION_MIN:
        raise impossible_position(request)
    return file_names.index(request.file_name) if request.file_name else 0


def opening_file_name(
    request: DumpRequest, profile: Profile, *, start_file_name: str, newest_file_name: Callable[[], str]
) -> str:
    """The file name in the opening ROTATE of a replica that reads from `start_file_name`. A replica that lost its
    connection inside a group skips as many events as it had when the group comes again, unless the ROTATE names another
    file than it knows: then it takes the primary for crashed and abandons the group. Where files begin with a ROTATE
    each, that is the file of the group. Elsewhere it hears the name of an earlier opening again, if it is one of this
    log; only then `newest_file_name` is called. Source: MariaDB 10.11 and 12.3, slave.cc, queue_event(), the case of a
    ROTATE."""
    if profile.rotates_with_files or not request.is_registered:
        return start_file_name
    held = _NUMBERED.fullmatch(request.file_name)
    newest = None if held is None else _NUMBERED.fullmatch(newest_file_name())
    if held is None or newest is None or int(held["number"]) > int(newest["number"]):
        return start_file_name
    is_ours = (held["before"], held["after"]) == (newest["before"], newest["after"])
    return request.file_name if is_ours else start_file_name


def impossible_position(request: DumpRequest) -> DumpError:
    """No event begins, or ever will, at this offset of the file."""
    name, offset = request.file_name or ".", request.file_position
    return DumpError(
        f"Client requested master to start replication from impossible position; the first event '{name}' at {offset}, "
        f"the last event read from '{name}' at 4, the last byte read from '{name}' at 4.",
        f"the replica asks for offset {offset} of file {request.file_name[:100]!r}, where no event begins: "
        "let it start at offset 4 of that file, or by GTID",
        advice=request.position_advice,
    )


def is_logged(gtid: Gtid, state: GtidState) -> bool:
    seq_no = state.seq_no(gtid.domain_id, gtid.server_id)
    return seq_no is not None and seq_no >= gtid.seq_no


def not_in_binlog(gtid: Gtid, state: GtidState) -> DumpError:
    """The replica is ahead, or diverged. Source: MariaDB 12.3, give_error_start_pos_missing_in_binlog()."""
    text = f"Error: connecting slave requested to start from GTID {gtid}, which is not in the master's binlog"
    latest = state.latest(gtid.domain_id)
    if latest is None:
        return DumpError(text, f"domain {gtid.domain_id}: the log has nothing of it; {_advice(gtid)}", kind="diverged")
    if latest.seq_no >= gtid.seq_no:
        text += (
            ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave "
            "has diverged due to executing extra erroneous transactions"
        )
        reason = f"the replica executed {gtid} by itself, or follows another primary's log"
    else:
        reason = f"the replica is ahead, or the log lost its end; {_advice(gtid)}"
    own = state.seq_no(gtid.domain_id, gtid.server_id)
    logged = f"nothing of server {gtid.server_id}" if own is None else f"server {gtid.server_id} up to {own}"
    return DumpError(
        text,
        f"domain {gtid.domain_id}: the log ends at {latest} and has {logged}, the replica is at {gtid}: {reason}",
        kind="diverged",
    )


def _advice(gtid: Gtid) -> str:
    return f"set the replica's gtid_slave_pos back for domain {gtid.domain_id}, or serve the log that has {gtid}"
